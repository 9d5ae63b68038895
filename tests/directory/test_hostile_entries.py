"""Entries that nobody can read keep every byte while others in their directory are linked, moved, renamed and removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from grid.caps import DirectoryCap, LitCap
from grid.codec.netstring import locate_netstring, pack_netstring
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.node import Directory
from grid.directory.pack import Child
from grid.directory.store import Trail
from tests.support.tree_grid import TreeGrid

FILE = LitCap(data=b"file")
LIT = FILE.to_string().encode()


def entry(name: bytes, read: bytes = LIT, write: bytes = b"", metadata: bytes = b"{}", more: bytes = b"") -> bytes:
    """One entry's bytes, whatever they are."""
    return pack_netstring(b"".join(map(pack_netstring, (name, read, write, metadata))) + more)


HOSTILE = {
    "a name that is not UTF-8": entry(b"\xff\xfe"),
    "half of a surrogate pair": entry(b"\xed\xb3\xbf"),
    "another one of the same bytes": entry(b"\xff\xfe", metadata=b'{"a": 1}'),
    "a name in another normal form": entry("e\u0301".encode()),
    "a name of nothing": entry(b""),
    "a slash, a zero and a line feed": entry(b"a/b\0\n"),
    "a name too long": entry(b"x" * 70_000),
    "no JSON": entry(b"no json", metadata=b"\xff{"),
    "JSON too deep": entry(b"deep", metadata=b"[" * 3000),
    "JSON that is no object": entry(b"list", metadata=b"[1]"),
    "metadata too long": entry(b"long", metadata=b'{"a": "' + b"x" * 70_000 + b'"}'),
    "a capability of the future": entry(b"future", read=b"lafs://from-the-future"),
    "a capability that is none": entry(b"none", read=b"URI:CHK:nonsense"),
    "a write capability that does not decrypt": entry(b"sealed", write=b"w" * 100),
    "no capability": entry(b"empty", read=b""),
    "bytes behind the fields": entry(b"more", more=b"behind"),
    "fields missing": pack_netstring(pack_netstring(b"alone")),
    "nothing in it": pack_netstring(b""),
    "no netstrings in it": pack_netstring(b"plain text"),
}
ORDINARY = b"".join(entry(name) for name in (b"kept", b"other", b"third"))


Change = Callable[[TreeGrid, Directory, Directory], Coroutine[Any, Any, None]]


async def link(grid: TreeGrid, here: Directory, there: Directory) -> None:
    await here.edit([SetChild("new", FILE)])


async def replace(grid: TreeGrid, here: Directory, there: Directory) -> None:
    await here.edit([SetChild("other", LitCap(data=b"other"))])


async def remove(grid: TreeGrid, here: Directory, there: Directory) -> None:
    await here.edit([RemoveChild("other")])


async def rename(grid: TreeGrid, here: Directory, there: Directory) -> None:
    await grid.store.move(Trail.of(here.cap), "other", Trail.of(here.cap), "renamed")


async def move_out(grid: TreeGrid, here: Directory, there: Directory) -> None:
    await grid.store.move(Trail.of(here.cap), "other", Trail.of(there.cap), "moved")


async def move_in(grid: TreeGrid, here: Directory, there: Directory) -> None:
    await grid.store.move(Trail.of(there.cap), "there", Trail.of(here.cap), "moved")


async def relink_over(grid: TreeGrid, here: Directory, there: Directory) -> None:
    await grid.store.move(Trail.of(there.cap), "there", Trail.of(here.cap), "other")


async def make_below(grid: TreeGrid, here: Directory, there: Directory) -> None:
    await here.make_directories(["new", "below"])


async def copy_all(grid: TreeGrid, here: Directory, there: Directory) -> None:
    """What cp -r does with all that is listed: its own directory stays as it is."""
    children = await here.list()
    await there.edit([SetChild(f"copy of {n}", child.target) for n, child in enumerate(children.values())])


CHANGES: list[Change] = [link, replace, remove, rename, move_out, move_in, relink_over, make_below, copy_all]


def entries_of(data: bytes) -> Counter[bytes]:
    """The entries of a directory as stored, and how often each occurs."""
    found: Counter[bytes] = Counter()
    offset = 0
    while offset < len(data):
        _, end = locate_netstring(data, offset, len(data))
        found[data[offset : end + 1]] += 1
        offset = end + 1
    return found


@pytest.fixture(scope="module")
def grid() -> TreeGrid:
    """One grid for all tests here; they make directories of their own."""
    return TreeGrid(3)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_entries_that_cannot_be_read_keep_every_byte_whatever_happens_to_others(grid: TreeGrid, change: Change) -> None:
    data = b"".join(HOSTILE.values()) + ORDINARY
    body = grid.run(grid.store.put_mutable(data))
    here = grid.store.directory(DirectoryCap(body))
    there = grid.make(children={"there": Child(target=FILE)})
    for _ in range(2):
        grid.run(change(grid, here, there))
        now = entries_of(bytes(grid.run(grid.client().open_mutable(body).read_all())))
        assert {what for what, raw in HOSTILE.items() if now[raw] != 1} == set()
        if change in (remove, rename, move_out, move_in, relink_over):
            break
    assert "kept" in grid.names(here.cap)
