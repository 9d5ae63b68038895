"""Finding shares: which servers to ask, what to trust, what to request again."""

from __future__ import annotations

import pytest

from grid.engine.lateness import LATE_FLOOR_S
from grid.errors import DamagedFileError, NoServersError, NotEnoughSharesError, PeerError
from grid.immutable.read.share_finder import MAX_OUTSTANDING, ShareFinder
from grid.immutable.read.speculation import WHOLE_SHARE_SIZE, speculate_ranges
from grid.immutable.share.layout import guess
from grid.immutable.share.requests import FindShares, ReadShares
from grid.immutable.share.verify import FileVerifier
from grid.ports import Buffer, Range, ServerId, ShareNumber
from tests.support.scripted_grid import encoded, noise
from tests.support.shares import EncodedFile

SMALL = encoded(noise(3000), 3, 10, 1200)
OLD = encoded(noise(600_000), 3, 10, 8192)


def finder(file: EncodedFile, servers: int = 10) -> ShareFinder:
    cap = file.cap
    verifier = FileVerifier(cap.ueb_hash, cap.size, cap.needed, cap.total)
    ids = [ServerId(f"s{index}") for index in range(servers)]
    return ShareFinder(ids, verifier, guess(cap.size, cap.needed, cap.total), 0)


def held(file: EncodedFile, numbers: list[int], ranges: list[Range]) -> dict[ShareNumber, list[Buffer]]:
    """What an honest server answers."""
    return {ShareNumber(n): [file.shares[n][offset : offset + size] for offset, size in ranges] for n in numbers}


def answer(found: ShareFinder, request: FindShares | ReadShares, file: EncodedFile, numbers: list[int]) -> None:
    if isinstance(request, FindShares):
        found.answer(request, held(file, numbers, list(request.ranges)), 0.01)
    else:
        (number,) = request.wants
        found.answer(request, held(file, [number], list(request.wants[number])), 0.02)


def test_finder_when_it_starts_asks_as_many_as_are_wanted() -> None:
    found = finder(SMALL)
    assert [request.server_id for request in found.search(0.0, 4)] == ["s0", "s1", "s2", "s3"]
    assert found.search(0.0, 4) == []
    assert len(found.search(0.0, 100)) == MAX_OUTSTANDING - 4


def test_finder_when_whole_shares_come_has_them_ready_at_once() -> None:
    found = finder(SMALL)
    for number, request in enumerate(found.search(0.0, 4)):
        answer(found, request, SMALL, [number])
    assert sorted(found.usable()) == [0, 1, 2, 3]
    assert found.examine(0.01) == []
    assert found.search(0.01, 4) == []


def test_finder_when_a_server_holds_many_shares_asks_no_more_servers() -> None:
    found = finder(SMALL)
    first, *_ = found.search(0.0, 1)
    answer(found, first, SMALL, list(range(10)))
    assert found.known_count == 10
    assert found.search(0.01, 4) == []


def test_finder_when_the_guess_is_wrong_asks_each_share_once_more_and_two_for_the_extension_block() -> None:
    found = finder(OLD)
    for number, request in enumerate(found.search(0.0, 4)):
        answer(found, request, OLD, [number])
    assert found.usable() == {}
    asked = found.examine(0.01)
    assert len(asked) == 4
    assert sorted(len(next(iter(request.wants.values()))) for request in asked) == [1, 1, 2, 2]
    # Those without the extension block come first, and wait for it.
    for examination in sorted(asked, key=lambda examination: examination.size):
        answer(found, examination, OLD, [])
    assert found.examine(0.02) == []
    assert sorted(found.usable()) == [0, 1, 2, 3]


def test_finder_when_the_extension_block_is_late_asks_others_for_it() -> None:
    found = finder(OLD)
    for number, request in enumerate(found.search(0.0, 4)):
        answer(found, request, OLD, [number])
    asked = found.examine(0.01)
    sources = [request for request in asked if len(next(iter(request.wants.values()))) == 2]
    for examination in asked:
        if examination not in sources:
            answer(found, examination, OLD, [])
    found.check(0.01 + 2 * LATE_FLOOR_S)
    again = found.examine(0.01 + 2 * LATE_FLOOR_S)
    assert {request.server_id for request in again} == {
        request.server_id for request in asked if request not in sources
    }
    assert found.known_count == 2
    answer(found, again[0], OLD, [])
    assert len(found.usable()) == 1
    assert found.examine(1.6) == []
    assert len(found.usable()) == 2


def test_finder_when_an_answer_lacks_its_data_reads_the_share_by_itself() -> None:
    found = finder(SMALL)
    first, *_ = found.search(0.0, 1)
    found.answer(first, {ShareNumber(0): [], ShareNumber(1): []}, 0.01)
    asked = found.examine(0.01)
    assert len(asked) == 2
    answer(found, asked[0], SMALL, [])
    assert sorted(found.usable()) == [0]
    found.answer(asked[1], {ShareNumber(1): []}, 0.02)
    assert found.known_count == 1


def test_finder_when_no_share_matches_blames_the_capability_and_reports_none() -> None:
    found = finder(SMALL, servers=3)
    other = encoded(noise(3001)[1:], 3, 10, 1200)
    for number, request in enumerate(found.search(0.0, 3)):
        answer(found, request, other, [number])
    assert found.take_reports() == [] and found.usable() == {}
    verdict = found.verdict()
    assert isinstance(verdict, NotEnoughSharesError) and "copy it again" in str(verdict)


def test_finder_when_a_share_is_false_drops_it_and_reports_it_once_another_proves_the_capability() -> None:
    found = finder(SMALL)
    first, second = found.search(0.0, 2)
    wrong = bytearray(SMALL.shares[0])
    wrong[-1] ^= 1
    found.answer(first, {ShareNumber(0): [bytes(wrong)]}, 0.01)
    assert found.take_reports() == []
    answer(found, second, SMALL, [1])
    assert sorted(found.usable()) == [1]
    (report,) = found.take_reports()
    assert (report.server_id, report.share_number, report.parting) == ("s0", 0, True)
    assert found.take_reports() == []


def test_finder_when_the_file_makes_no_sense_ends_the_read() -> None:
    from tests.support.share_vectors import load_share_vectors

    vector = next(vector for vector in load_share_vectors() if vector.name == "segment size zero")
    cap = vector.cap
    verifier = FileVerifier(cap.ueb_hash, cap.size, cap.needed, cap.total)
    found = ShareFinder([ServerId("s")], verifier, guess(cap.size, cap.needed, cap.total), 0)
    (request,) = found.search(0.0, 1)
    with pytest.raises(DamagedFileError):
        found.answer(request, {ShareNumber(0): [vector.shares[0]]}, 0.01)


def test_finder_when_an_answer_is_late_asks_somebody_else() -> None:
    found = finder(SMALL)
    found.search(0.0, 2)
    late = 2 * LATE_FLOOR_S
    found.check(late)
    assert [request.server_id for request in found.search(late, 2)] == ["s2", "s3"]


def test_finder_when_a_server_fails_asks_it_again_once_everything_else_is_tried() -> None:
    found = finder(SMALL, servers=2)
    first, second = found.search(0.0, 4)
    found.fail(first, PeerError("gone"))
    assert found.search(0.0, 4) == []
    answer(found, second, SMALL, [5])
    (again,) = found.search(0.01, 4)
    assert again.server_id == "s0"
    found.fail(again, PeerError("gone"))
    assert found.search(0.01, 4) == []
    assert found.exhausted
    error = found.verdict()
    assert isinstance(error, NotEnoughSharesError)
    assert (error.found, error.needed) == (1, 3)
    assert "1 of 2 servers failed" in str(error)


def test_finder_when_nobody_answered_says_so() -> None:
    found = finder(SMALL, servers=0)
    assert found.search(0.0, 4) == []
    assert found.exhausted
    assert isinstance(found.verdict(), NoServersError)


def test_finder_when_settled_asks_again_what_was_outstanding_late_ones_last() -> None:
    found = finder(SMALL, servers=4)
    slow, quick = found.search(0.0, 2)
    assert slow.server_id == "s0"
    found.answer(quick, {}, 0.01)
    found.check(1.0)
    found.search(1.0, 2)
    found.settle()
    assert [request.server_id for request in found.search(2.0, 9)] == ["s2", "s3", "s0"]
    assert all(peer.outstanding_bytes for peer in found.peers if peer.server_id != "s1")


def test_speculation_when_shares_are_small_takes_them_whole() -> None:
    small = guess(100_000, 3, 10)
    assert speculate_ranges(small, 0) == [(0, small.share_size + 2048)]
    large = guess(10**9, 3, 10)
    assert large.share_size > WHOLE_SHARE_SIZE
    assert sum(size for _, size in speculate_ranges(large, 500)) < 100_000
