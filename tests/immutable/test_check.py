"""Checking: which servers hold which shares, what is damaged, and the cost of failing servers."""

from __future__ import annotations

from typing import Any

import pytest

from grid.caps import ChkCap, LitCap
from grid.engine.requests import UNREAD
from grid.errors import CapError, DamagedFileError, NoServersError, NotEnoughSharesError
from grid.immutable.share.geometry import Geometry
from grid.immutable.share.ueb import parse_ueb
from tests.support.scripted_grid import ScriptedGrid, noise
from tests.support.share_vectors import ShareVector, load_share_vectors


@pytest.mark.parametrize("verify", [False, True])
def test_check_when_all_is_well_says_healthy(verify: bool) -> None:
    grid = ScriptedGrid()
    file = grid.store(noise(5000), segment_size=1200)
    result = grid.check(file.cap.verify_cap(), verify=verify)
    assert result.healthy and result.recoverable and result.happiness == 10
    assert result.summary == "Healthy"
    assert result.sharemap == {number: [f"s{number}"] for number in range(10)}
    assert len(result.responding) == 10


@pytest.mark.parametrize("verify", [False, True])
def test_check_when_shares_are_missing_says_how_many_there_are(verify: bool) -> None:
    grid = ScriptedGrid()
    file = grid.store(noise(5000), holdings={0: [0, 1], 1: [1], 5: [7]})
    result = grid.check(file.cap, verify=verify)
    assert not result.healthy and result.recoverable
    assert result.summary == "Not Healthy: 3 shares (enc 3-of-10)"
    results = result.to_json()["results"]
    assert isinstance(results, dict)
    assert results["count-shares-good"] == 3
    assert results["count-good-share-hosts"] == 3
    assert results["count-happiness"] == 3
    assert results["sharemap"] == {"0": ["s0"], "1": ["s0", "s1"], "7": ["s5"]}


def test_check_when_too_few_shares_exist_says_unrecoverable() -> None:
    grid = ScriptedGrid()
    file = grid.store(noise(5000), holdings={0: [0, 1]})
    result = grid.check(file.cap)
    assert not result.recoverable
    repaired = grid.repair(file.cap)
    assert repaired.attempted and not repaired.successful


def test_check_when_the_file_is_literal_asks_nobody() -> None:
    grid = ScriptedGrid()
    result = grid.check(LitCap(data=b"x"))
    assert result.healthy and result.literal
    assert result.to_json() == {"storage-index": "", "results": {"healthy": True}}
    assert not grid.repair(LitCap(data=b"x")).attempted


@pytest.mark.parametrize("verify", [False, True])
def test_check_when_no_server_answers_says_so(verify: bool) -> None:
    grid = ScriptedGrid(3)
    file = grid.store(noise(5000))
    for index in range(3):
        grid.script(index, dead_from=0)
    with pytest.raises(NoServersError, match="none of 3 servers"):
        grid.check(file.cap, verify=verify)


def test_check_when_the_numbers_of_the_cap_are_impossible_says_so() -> None:
    grid = ScriptedGrid(3)
    with pytest.raises(CapError):
        grid.check(ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=7, total=3, size=100))


@pytest.mark.parametrize("call", range(6))
@pytest.mark.parametrize("fault", ["dead_from", "silent_from"])
def test_check_when_servers_fail_counts_what_the_others_hold(fault: str, call: int) -> None:
    grid = ScriptedGrid(5)
    file = grid.store(noise(5000), segment_size=1200)
    for index in (1, 3):
        grid.script(index, **{fault: call})
    result = grid.check(file.cap)
    assert {0, 2, 4, 5, 7, 9} <= set(result.sharemap)
    assert not result.corrupt
    assert (len(result.responding) == 5) is (call > 0)
    assert grid.now < 100


def test_verify_when_servers_stall_on_many_bytes_waits_for_them_but_the_first_time() -> None:
    grid = ScriptedGrid(10)
    file = grid.store(noise(2_000_000), segment_size=1 << 17)
    for server in grid.servers:
        server.script.delay_s = 0.02
    for index in (1, 2):
        grid.script(index, stalls_over=5000, delay_s=0.4)
    seconds = []
    for _ in range(4):
        began = grid.runtime.clock.now()
        result = grid.check(file.cap, verify=True)
        seconds.append(grid.runtime.clock.now() - began)
        assert len(result.sharemap) == 8 and result.recoverable and set(result.silent) == {"s1", "s2"}
    assert max(seconds[1:]) < min(2.6, seconds[0] - 1), seconds
    assert grid.servers[1].fired["stalled"] and grid.servers[2].fired["stalled"]


def test_check_when_a_silent_server_has_many_shares_waits_for_it_but_once() -> None:
    grid = ScriptedGrid(2)
    file = grid.store(noise(5000), n=60, holdings={0: range(60), 1: range(60)})
    grid.script(0, silent_from=1)
    result = grid.check(file.cap)
    assert result.healthy
    assert grid.servers[0].fired["silent"] >= 1
    assert grid.now < 100


def test_check_when_leases_are_to_be_added_adds_them_everywhere() -> None:
    grid = ScriptedGrid()
    file = grid.store(noise(5000))
    assert grid.check(file.cap, verify=False, leases=True).healthy
    assert all(len(server.leases) == 1 for server in grid.servers)
    assert len({lease for server in grid.servers for lease in server.leases}) == 10


def test_check_when_servers_claim_too_much_believes_what_is_verified() -> None:
    grid = ScriptedGrid()
    file = grid.store(noise(5000), holdings={7: [7], 8: [8], 9: [9]})
    for index in range(7):
        grid.script(index, claims=frozenset({index, 10, 300, -2}))
    assert grid.check(file.cap, verify=False).healthy
    result = grid.check(file.cap)
    assert set(result.sharemap) == {7, 8, 9}
    assert {number for _, number in (*result.corrupt, *result.incompatible)} == set(range(7))


@pytest.mark.parametrize("kind", ["many", "few", "long"])
def test_check_when_servers_answer_in_the_wrong_shape_calls_no_such_share_good(kind: str) -> None:
    grid = ScriptedGrid()
    file = grid.store(noise(5000), segment_size=1200)
    grid.script(4, pieces=kind)
    result = grid.check(file.cap)
    assert set(result.sharemap) == set(range(10)) - {4}


def test_check_when_a_share_is_false_tells_its_server() -> None:
    grid = ScriptedGrid()
    file = grid.store(noise(5000), segment_size=1200)
    grid.script(4, corrupt={(4, 40): 1})
    result = grid.check(file.cap)
    assert list(result.corrupt) == [("s4", 4)]
    (reason,) = result.corrupt.values()
    assert "segment 0" in reason
    assert grid.servers[4].advisories == [(4, reason)]


@pytest.mark.parametrize("vector", load_share_vectors(), ids=lambda vector: vector.name)
def test_check_when_shares_are_the_published_ones_finds_their_faults(vector: ShareVector) -> None:
    grid = ScriptedGrid(5)
    for number, share in vector.shares.items():
        grid.servers[number % 5].shares.setdefault(vector.cap.storage_index, {})[number] = share
    try:
        result = grid.check(vector.cap)
    except DamagedFileError:
        assert vector.get == "damaged"
        return
    found = {number: "bad" for _, number in result.corrupt}
    found |= {number: "version" for _, number in result.incompatible}
    expected = {n: "version" if fault == "version" else "bad" for n, fault in vector.faults.items()}
    if vector.name == "sections apart":  # Readable, but 1.20's verifier wants them in their places.
        assert expected.items() <= found.items()
    else:
        assert expected == found
    assert set(result.sharemap) == set(vector.shares) - set(found)


def test_verify_when_trees_are_large_reads_them_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.immutable.share.audit.TREE_PART", 4096)
    grid = ScriptedGrid(2)
    file = grid.store(noise(3000), k=1, n=2, segment_size=10)
    assert grid.check(file.cap).healthy
    assert max(len(ranges) for server in grid.servers for call in server.read_calls for ranges in call.values()) == 2
    grid.script(1, corrupt={(1, len(file.shares[1]) - 3000): 4})
    assert set(grid.check(file.cap).sharemap) == {0}


def test_repair_when_shares_are_missing_makes_them_again_byte_for_byte() -> None:
    grid = ScriptedGrid()
    data = noise(50_000)
    file = grid.store(data, segment_size=1200, holdings={0: [0], 4: [4], 9: [9, 8]})
    result = grid.repair(file.cap.verify_cap())
    assert result.successful and result.after.healthy and not result.before.healthy
    assert result.after.sharemap == grid.check(file.cap).sharemap
    assert grid.shares(file.cap.storage_index) == {n: {share} for n, share in enumerate(file.shares)}
    assert result.after.happiness == 10
    assert grid.get(file.cap) == data
    assert not grid.debris()


def test_repair_when_all_is_well_does_nothing() -> None:
    grid = ScriptedGrid()
    file = grid.store(noise(5000))
    result = grid.repair(file.cap)
    assert not result.attempted and not result.successful
    assert not any("allocate" in server.calls for server in grid.servers)


def test_repair_when_all_shares_crowd_on_one_server_spreads_them() -> None:
    grid = ScriptedGrid()
    data = noise(50_000)
    file = grid.store(data, segment_size=1200, holdings={3: range(10)})
    before = grid.check(file.cap, verify=False, happy=7)
    assert before.healthy and before.summary.startswith("Healthy, but spread over only 1 server instead of 7")
    assert grid.check(file.cap).summary == "Healthy"
    result = grid.repair(file.cap, happy=7)
    assert result.attempted and result.successful and result.after.happiness >= 7
    assert grid.check(file.cap, happy=7).summary == "Healthy"
    assert grid.shares(file.cap.storage_index) == {n: {share} for n, share in enumerate(file.shares)}
    assert not grid.repair(file.cap, happy=7).attempted
    assert not grid.debris()


def test_repair_when_shares_crowd_and_no_other_server_takes_any_leaves_the_file_as_it_was() -> None:
    grid = ScriptedGrid(5)
    file = grid.store(noise(5000), n=5, holdings={0: range(5)})
    for index in range(5):
        grid.script(index, full=True)
    result = grid.repair(file.cap, happy=4)
    assert result.attempted and result.after.healthy and result.after.crowded
    alone = ScriptedGrid(1)
    file = alone.store(noise(5000), n=5, holdings={0: range(5)})
    assert not alone.repair(file.cap, happy=4).attempted


@pytest.mark.parametrize("room", [None, 0, 100])
def test_repair_when_shares_crowd_and_the_only_other_server_is_full_tries_nothing(room: int | None) -> None:
    grid = ScriptedGrid(3)
    file = grid.store(noise(5000), k=2, n=3, holdings={0: [0], 1: [1, 2]})
    grid.script(0, read_only=True, known=True)  # It counts with what it holds.
    grid.script(2, known=room is not None, room=2**40 if room is None else room)
    found = grid.check(file.cap, verify=False, happy=3)
    assert found.healthy and found.crowded and found.can_spread == (room is None)
    assert found.summary.endswith("no other server takes a share now") == (room is not None)
    result = grid.repair(file.cap, happy=3)
    assert result.attempted == (room is None)
    assert result.after.crowded == (room is not None)


def test_repair_when_nobody_takes_a_share_encodes_nothing() -> None:
    grid = ScriptedGrid(3)
    file = grid.store(noise(5000), k=2, n=3, holdings={0: [0], 1: [1]})
    for index in range(3):
        grid.script(index, read_only=True)
    grid.virtual.cpu.calls.clear()
    result = grid.repair(file.cap, happy=3)
    assert result.attempted and not result.successful and len(result.after.sharemap) == 2
    assert not [name for name in grid.virtual.cpu.calls if "encode" in name]
    grid.script(2, read_only=False)
    assert grid.repair(file.cap, happy=3).successful
    assert [name for name in grid.virtual.cpu.calls if "encode" in name]


def test_repair_when_a_claimed_share_is_false_places_it_elsewhere() -> None:
    grid = ScriptedGrid(12)
    file = grid.store(noise(5000), segment_size=1200, holdings={index: [index] for index in range(10)})
    for index in range(6):
        grid.script(index, corrupt={(index, 700): 1})
    result = grid.repair(file.cap)
    assert result.successful
    assert {server for server, _ in result.after.corrupt} == {f"s{index}" for index in range(6)}
    assert set(grid.check(file.cap).sharemap) == set(range(10))


def test_repair_when_good_shares_lie_beyond_the_candidates_counts_them() -> None:
    grid = ScriptedGrid(30)
    data = noise(5000)
    file = grid.store(data, k=1, n=3, holdings={})
    order = [server.identity.server_id for server in grid.open(file.cap)._servers]
    grid.lay(file, {int(order[20][1:]): [0], int(order[29][1:]): [1]})
    result = grid.repair(file.cap)
    assert result.successful
    assert [len(holders) for holders in result.after.sharemap.values()] == [1, 1, 1]


def test_repair_when_no_server_takes_shares_is_unsuccessful() -> None:
    grid = ScriptedGrid(5)
    file = grid.store(noise(5000), n=5, holdings={0: [0], 1: [1], 2: [2]})
    for index in range(5):
        grid.script(index, full=True)
    result = grid.repair(file.cap)
    assert result.attempted and not result.successful
    assert len(result.after.sharemap) == 3


def test_repair_when_the_file_has_a_foreign_extension_block_keeps_it() -> None:
    vector = next(vector for vector in load_share_vectors() if vector.get == "ok" and len(vector.shares) >= 3
                  and not vector.faults and parse_ueb_of(vector) != "usual")  # fmt: skip
    grid = ScriptedGrid(vector.cap.total)
    for number, share in list(vector.shares.items())[: vector.cap.needed]:
        grid.servers[number].shares.setdefault(vector.cap.storage_index, {})[number] = share
    result = grid.repair(vector.cap)
    assert result.successful
    assert grid.check(vector.cap).healthy
    assert grid.get(vector.cap) == vector.text


def parse_ueb_of(vector: ShareVector) -> str:
    """Whether a 1.20 would have written this extension block, or something else."""
    from grid.immutable.share.layout import parse_header, parse_ueb_length

    share = next(iter(vector.shares.values()))
    layout = parse_header(share)
    start = layout.ueb_offset + layout.length_field_size
    length = parse_ueb_length(layout, share[layout.ueb_offset :])
    ueb = parse_ueb(share[start : start + length])
    Geometry(size=vector.cap.size, k=vector.cap.needed, n=vector.cap.total, segment_size=ueb.segment_size)
    return "usual" if ueb.codec_name is not None and ueb.size is not None else "foreign"


@pytest.mark.parametrize("verify", [False, True])
def test_check_when_a_disk_cannot_read_a_share_blames_that_share_alone(verify: bool) -> None:
    grid = ScriptedGrid()
    file = grid.store(noise(5000), k=2, n=3, holdings={0: [0, 1], 1: [2]})
    grid.script(0, unread=frozenset([0]))
    result = grid.check(file.cap, verify=verify)
    assert result.sharemap == {1: ["s0"], 2: ["s1"]}
    assert result.corrupt == {("s0", 0): UNREAD}
    assert not result.healthy and result.recoverable
    assert grid.servers[0].fired["unread"]
    assert grid.get(file.cap) == noise(5000)


@pytest.mark.parametrize("what", ["no room", "gone", "dead"])
def test_check_when_an_answer_lacks_a_share_asks_for_it_alone(what: str) -> None:
    """An answer about many files leaves out the pieces that it has no room for."""
    grid = ScriptedGrid()
    file = grid.store(noise(5000), k=2, n=3, holdings={0: [0, 1], 1: [2]})
    server = grid.servers[0]
    find = server.find_shares

    async def find_without_pieces(*arguments: Any) -> Any:
        found = await find(*arguments)
        server.script.forget = frozenset([0]) if what == "gone" else frozenset()
        server.script.dead_from = 0 if what == "dead" else None
        return dict.fromkeys(found, ())

    setattr(server, "find_shares", find_without_pieces)  # noqa: B010 - mypy knows the method
    result = grid.check(file.cap, verify=False)
    here = {"no room": [0, 1], "gone": [1], "dead": []}[what]
    assert result.sharemap == {**{number: ["s0"] for number in here}, 2: ["s1"]}
    assert not result.corrupt and server.read_calls == ([{0: [(0, 1)], 1: [(0, 1)]}] if what != "dead" else [])


def test_get_when_disks_cannot_read_shares_names_them_in_its_error() -> None:
    grid = ScriptedGrid()
    file = grid.store(noise(5000), k=2, n=3, holdings={0: [0, 1]})
    grid.script(0, unread=frozenset([0]))
    with pytest.raises(NotEnoughSharesError) as raised:
        grid.get(file.cap)
    assert any(UNREAD in str(cause) for cause in raised.value.causes)
    assert "file not found" not in str(raised.value)
