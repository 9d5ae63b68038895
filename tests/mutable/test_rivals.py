"""Two versions with one sequence number, neither on most servers: one is stored on the servers that have neither, then built upon."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from grid.engine.grid import Encoding
from grid.errors import MustForceRepairError
from grid.mutable import publish
from grid.mutable.share.geometry import FormatName
from grid.mutable.share.keys import WriteCap
from grid.mutable.share.layout import parse_header
from grid.ports import Range, ShareNumber, SlotAnswer, SlotSecrets, StorageIndex, TestWrite
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotScript

FORMATS: list[FormatName] = ["sdmf", "mdmf"]
RIVALS = (b"one", b"other")


Saved = list[dict[int, bytes]]
"""What each server has of the file."""


def contested(shares: str, format: FormatName = "sdmf", outside: int = 0) -> tuple[MutableGrid, WriteCap]:
    """A file, 2-of-n, whose holder number i has a share of the old version (o), of the rivals (1, 2), or none (-).

    outside: how many more servers there are, which never held the file.
    """
    return rivalry(shares, format, outside)[:2]


def rivalry(shares: str, format: FormatName, outside: int = 0) -> tuple[MutableGrid, WriteCap, dict[str, Saved]]:
    """The same, with all shares of each version."""
    grid = MutableGrid(len(shares) + outside, Encoding(k=2, n=len(shares), happy=1))
    cap = grid.create(b"old", format)
    index = cap.storage_index
    assert index is not None
    kept: dict[str, Saved] = {"o": saved(grid, cap), "-": [{} for _ in grid.servers]}
    for number, contents in enumerate(RIVALS, 1):
        put_back(grid, cap, kept["o"])
        grid.run(grid.open(cap, process=number).overwrite(contents))
        kept[str(number)] = saved(grid, cap)
    chosen = list(kept["-"])
    for position, which in zip(holders(kept), shares, strict=True):
        chosen[position] = kept[which][position]
    put_back(grid, cap, chosen)
    grid.reset_counts()
    return grid, cap, kept


def holders(kept: dict[str, Saved]) -> list[int]:
    """The positions of the servers that held the old version."""
    return [position for position, held in enumerate(kept["o"]) if held]


def saved(grid: MutableGrid, cap: WriteCap) -> Saved:
    """What each server has of the file."""
    index = cap.storage_index or b""
    return [{number: bytes(data) for number, data in server.slots.get(index, {}).items()} for server in grid.servers]


def put_back(grid: MutableGrid, cap: WriteCap, shares: Saved) -> None:
    index = cap.storage_index or b""
    for server, held in zip(grid.servers, shares, strict=True):
        server.slots[index] = {number: bytearray(data) for number, data in held.items()}


def seqnums(grid: MutableGrid, cap: WriteCap) -> list[int]:
    """The sequence number of each share."""
    return [parse_header(bytes(data))[0].seqnum for held in saved(grid, cap) for data in held.values()]


def root_hashes(grid: MutableGrid, cap: WriteCap) -> list[bytes]:
    """The root hash of each share."""
    return [parse_header(bytes(data))[0].root_hash for held in saved(grid, cap) for data in held.values()]


def writes(grid: MutableGrid) -> list[int]:
    """How many writes each server has received."""
    return [Counter(server.calls)["test_and_write"] for server in grid.servers]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ("1122o", [1, 1, 1, 1, 2]),
        ("1122-", [1, 1, 1, 1, 2]),
        ("11oo22o", [1, 1, 2, 2, 1, 1, 2]),
        ("111222", [1] * 6),
        ("11122o", [1, 1, 1, 1, 1, 2]),
        ("11122", [1] * 5),
        ("ooooo", [1] * 5),
    ],
)
def test_modify_when_rivals_lack_a_majority_then_writes_once_more_to_servers_that_have_neither(
    shares: str, expected: list[int], format: FormatName
) -> None:
    """Not if there are no such servers, too few of them for a majority, or no need for one."""
    grid, cap = contested(shares, format)
    grid.run(grid.open(cap, process=3).modify(lambda old, _: old + b", new"))
    assert writes(grid) == expected
    is_contested = shares not in ("11122", "ooooo")
    assert {Counter(server.calls)["read_slot"] for server in grid.servers} == {3 if is_contested else 1}
    assert grid.read(cap) in ({b"old, new"} if shares == "ooooo" else {b"one, new", b"other, new"})
    assert set(seqnums(grid, cap)) == {3 if shares != "ooooo" else 2}


@pytest.mark.parametrize("format", FORMATS)
def test_modify_when_the_servers_that_have_neither_refuse_then_builds_on_the_best(format: FormatName) -> None:
    grid, cap = contested("1122o", format)
    best = grid.read(cap)
    grid.servers[4].script = SlotScript(dead_from=0, only=frozenset({"test_and_write"}))
    grid.run(grid.open(cap, process=3).modify(lambda old, _: old + b", new"))
    assert grid.read(cap) == best + b", new"


@pytest.mark.parametrize("shares", ["22111", "11222"])
def test_modify_when_a_server_with_the_acknowledged_rival_is_away_then_stores_nothing_where_the_file_never_was(
    shares: str,
) -> None:
    """Such a server would add a vote for good, and three servers would have each version when the other one is back."""
    grid, cap, kept = rivalry(shares, "sdmf", outside=5)
    away = grid.servers[holders(kept)[-1]]
    away.script = SlotScript(dead_from=0)
    grid.run(grid.open(cap, process=3).modify(lambda old, _: None))
    assert writes(grid) == [0] * 10
    away.script = SlotScript()
    assert grid.read(cap) == RIVALS[int(shares[-1]) - 1]


def test_modify_when_all_servers_have_answered_then_stores_the_best_where_a_share_is_missing() -> None:
    grid, cap = contested("1122-", outside=5)
    best = grid.read(cap)
    grid.run(grid.open(cap, process=3).modify(lambda old, _: None))
    assert sum(writes(grid)) == 1
    assert grid.read(cap) == best
    assert sorted(Counter(root_hashes(grid, cap)).values()) == [2, 3]


@pytest.mark.parametrize(("format", "whole"), [("sdmf", True), ("mdmf", True), ("mdmf", False)])
@pytest.mark.parametrize(("shares", "number"), [("1122-", 0), ("1122-", 1), ("1122o", 1)])
def test_modify_when_a_rival_arrives_after_the_map_then_builds_on_it(
    shares: str, number: int, format: FormatName, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is on most servers then, and acknowledged, although its root hash is lower. The server has done nothing wrong.

    whole: whether a version goes out in one message, or in pieces.
    """
    grid, cap, kept = rivalry(shares, format)
    best, last = grid.read(cap), grid.servers[4]
    rival = RIVALS[1 - RIVALS.index(best)]
    share = next(held[number] for held in kept[str(RIVALS.index(rival) + 1)] if number in held)
    write, arriving = last.test_and_write, [share]

    async def write_late(
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        if arriving:
            last.enablers[storage_index] = secrets.write_enabler
            last.slots[storage_index] = {number: bytearray(arriving.pop())}
        return await write(storage_index, secrets, writes, ranges)

    monkeypatch.setattr(last, "test_and_write", write_late)
    if not whole:
        monkeypatch.setattr(publish, "WHOLE_BYTES", 0)
    grid.run(grid.open(cap, process=3).modify(lambda old, _: old + b", new"))
    assert grid.read(cap) == rival + b", new"
    assert [server.advisories for server in grid.servers] == [[]] * 5


@pytest.mark.parametrize("shares", ["1122o", "1122-"])
def test_modify_when_the_best_rival_goes_out_in_pieces_then_stores_it_on_most_servers(
    shares: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid, cap = contested(shares, "mdmf")
    best = grid.read(cap)
    monkeypatch.setattr(publish, "WHOLE_BYTES", 0)
    grid.run(grid.open(cap, process=3).modify(lambda old, _: None))
    assert sorted(Counter(root_hashes(grid, cap)).values()) == [2, 3]
    assert grid.read(cap) == best


def test_repair_when_not_forced_leaves_rivals_as_they_are() -> None:
    grid, cap = contested("1122o")
    with pytest.raises(MustForceRepairError):
        grid.run(grid.open(cap, process=3).repair())
    assert writes(grid) == [0] * 5
