"""Contents kept by version: a read asks which version is the newest, and fetches it only if it is another one."""

from __future__ import annotations

import gc

import pytest

from grid.mutable.node import MutableFile
from grid.mutable.read import kept_contents
from grid.mutable.read.kept_contents import KeptFiles
from grid.mutable.share import mdmf
from grid.mutable.share.geometry import FormatName
from grid.sinks import BytesSink
from tests.mutable.speculating import BLOCK, OLD, ONCE, calls, changed
from tests.support.mutable_grid import MutableGrid

SMALL = b"entries " * 1000
FRONTS = 10 * mdmf.DATA_OFFSET
FEW = 5
TWO_ROUNDS = {ONCE, ONCE * 2}


def read_again(grid: MutableGrid, file: MutableFile) -> bytes:
    """Calls and bytes are counted from here on."""
    grid.reset_counts()
    return grid.run(file.read_all())


def read_bytes(grid: MutableGrid) -> int:
    return sum(server.read_bytes for server in grid.servers)


@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
@pytest.mark.parametrize("authority", ["read", "write"])
def test_read_when_nothing_changed_then_takes_one_round_trip_and_only_fronts(
    format: FormatName, authority: str
) -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, format)
    file = grid.open(cap if authority == "write" else cap.read_cap(), process=1)
    first = grid.run(file.read_all())
    for _ in range(3):
        assert read_again(grid, file) is first
        assert calls(grid) == {ONCE, ()}
        assert sum(len(server.calls) for server in grid.servers) == FEW
        assert read_bytes(grid) <= FRONTS + 10 * 1000  # SDMF has the hashes of the share in its front.
    assert first == OLD


def test_read_when_another_client_has_written_then_returns_its_contents() -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, "mdmf")
    file, other = grid.open(cap.read_cap(), process=1), grid.open(cap, process=2)
    grid.run(file.read_all())
    expected, rounds = OLD, []
    for number in range(3):
        expected = changed(expected, number * 1000, b"changed")
        grid.run(other.overwrite(expected))
        assert read_again(grid, file) == expected
        rounds.append(max(len(server.calls) for server in grid.servers))
    # The first change is not expected. After that, the file counts as one that changes: the data is requested early,
    # as far as it may be.
    assert rounds[0] == 2 and calls(grid) <= TWO_ROUNDS
    assert read_again(grid, file) == expected
    assert read_again(grid, file) == expected and calls(grid) <= {ONCE, ()} and read_bytes(grid) <= FRONTS


def test_read_when_the_file_changes_each_time_then_requests_its_data_early() -> None:
    grid = MutableGrid()
    text = bytes(200_000)
    cap = grid.create(text, "sdmf")
    file, other = grid.open(cap.read_cap(), process=1), grid.open(cap, process=2)
    grid.run(file.read_all())
    rounds = []
    for number in range(4):
        text = changed(text, number, b"x")
        grid.run(other.overwrite(text))
        assert read_again(grid, file) == text
        rounds.append(max(len(server.calls) for server in grid.servers))
    assert rounds == [2, 1, 1, 1]


@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
def test_modify_when_the_contents_are_kept_then_reads_no_block(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, format)
    file, other = grid.open(cap, process=1), grid.open(cap, process=2)
    grid.run(file.modify(lambda old, _: old + b"1"))
    # A server that does not answer keeps the remembered map from being used, but not the contents.
    gone = grid.servers.pop()
    grid.reset_counts()
    grid.run(file.modify(lambda old, _: old + b"2"))
    assert read_bytes(grid) <= FRONTS + 10 * 1000
    assert grid.run(other.read_all()) == OLD + b"12"
    grid.servers.append(gone)
    grid.run(other.modify(lambda old, _: old + b"3"))
    grid.run(file.modify(lambda old, _: old + b"4"))
    assert grid.read(cap) == OLD + b"1234"


def test_read_when_the_shares_of_a_kept_version_are_gone_then_fails() -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, "mdmf")
    file = grid.open(cap, process=1)
    grid.run(file.read_all())
    for server in grid.servers[2:]:
        server.slots.clear()
    with pytest.raises(Exception, match="shares"):
        read_again(grid, file)


def test_kept_when_there_are_too_many_bytes_then_forgets_the_file_used_longest_ago(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_contents, "MOST_KEPT_BYTES", 3 * len(SMALL))
    monkeypatch.setattr(kept_contents, "MOST_FILE_BYTES", 2 * len(SMALL))
    grid = MutableGrid()
    cap = grid.create(SMALL)
    files = [grid.open(cap, process=1) for _ in range(4)]
    kept = grid.grid(1).remembered.of(KeptFiles)
    for number in (0, 1, 2, 0, 3):
        grid.run(files[number].read_all())
        assert kept.size <= 3 * len(SMALL)
    assert [file.recalled is not None for file in files] == [True, False, True, True]
    assert grid.run(files[1].read_all()) == SMALL
    grid.run(files[1].overwrite(3 * SMALL))
    assert read_again(grid, files[2]) == 3 * SMALL and files[2].recalled is None
    assert kept.size == 2 * len(SMALL)
    files.clear()
    gc.collect()
    assert kept.size == 0


def test_range_when_the_contents_are_kept_then_is_cut_out_of_them() -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, "mdmf")
    file = grid.open(cap, process=1)
    grid.run(file.read_all())
    for start, size in ((0, 10), (BLOCK, 3 * BLOCK), (len(OLD) - 5, 100), (len(OLD), 5), (0, 0)):
        sink = BytesSink()
        grid.reset_counts()
        assert grid.run(file.read(sink, start, size)) == len(OLD[start : start + size])
        assert sink.data == OLD[start : start + size]
        assert read_bytes(grid) <= FRONTS
