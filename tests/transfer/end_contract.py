"""The contract that every end fulfills as a source and a target, on an asyncio event loop."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from grid.ports import Buffer
from grid.transfer.ends import (
    Body,
    Entry,
    KeptPart,
    KeptParts,
    NoParts,
    NotThereError,
    SmallSource,
    SmallTarget,
    SourceChangedError,
    SourceEnd,
    TargetEnd,
)
from grid.transfer.memory import BodyMemory, Unlimited

SIZES = (0, 1, 55, 56, 4096, 2**20 - 1, 2**20 + 1, 9 * 2**20 + 7)
MTIME_NS = 1_700_000_000 * 10**9


class BytesBody:
    """Contents in memory, in pieces; ends early if it is given less than it says."""

    def __init__(
        self, data: bytes, size: int | None = None, ranges: Sequence[tuple[int, int]] = (), *, changes: bool = False
    ) -> None:
        """changes: whether the source changed while it was read."""
        self._data, self.size, self._ranges = data, len(data) if size is None else size, ranges
        self._changes = changes
        self.scratch = secrets.token_hex(8)
        self.resumed: list[KeptPart] = []
        self.parts: KeptParts = NoParts()
        self.memory: BodyMemory = Unlimited()

    is_ahead = False

    def ranges(self) -> Sequence[tuple[int, int]]:
        return self._ranges

    def stream(self, offset: int = 0) -> AsyncIterator[Buffer]:
        return self.fetch(offset, self.size - offset)

    async def fetch(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        end = offset + length
        while offset < min(end, len(self._data)):
            piece = self._data[offset : min(end, offset + 300_000)]
            offset += len(piece)
            yield piece
        if offset < end:
            raise SourceChangedError("the source is shorter than it said")

    def resume(self, part: KeptPart) -> None:
        self.resumed.append(part)

    def digests(self, offset: int, length: int) -> bytes:
        data = self._data[offset : offset + length]
        return b"".join(hashlib.sha256(data[at : at + 2**20]).digest() for at in range(0, len(data), 2**20))

    def matches(self, part: KeptPart, read: Callable[[int, int], Buffer]) -> bool:
        return bytes(read(part.offset, part.length)) == self._data[part.offset : part.offset + part.length]

    async def require_unchanged(self) -> None:
        if self._changes:
            raise SourceChangedError("the source changed")


async def stored(end: TargetEnd, entry: Entry, body: Body) -> None:
    """Store and settle one file."""
    token = await end.store(entry, body)
    if token:
        assert not await end.settle([(entry, token)])


async def listed(end: SourceEnd) -> dict[str, Entry]:
    """Everything that is a file."""
    return {found.name: found async for found in end.entries() if isinstance(found, Entry)}


async def read(end: SourceEnd, entry: Entry, offset: int = 0, length: int | None = None) -> bytes:
    """A range of a file."""
    opened = await end.open(entry)
    try:
        size = opened.entry.size or 0
        data = b"".join([bytes(piece) async for piece in opened.read(offset, size if length is None else length)])
        await opened.require_unchanged()
    finally:
        await opened.close()
    return data


async def check_contract(end: TargetEnd) -> None:
    """Run all of it at an end where nothing is."""
    await _files_come_back_with_their_facts(end)
    await _a_file_that_ends_early_never_shows(end)
    await _a_file_that_changes_meanwhile_never_shows(end)
    await _replacing_and_removing(end)
    await _names(end)
    await check_small_files(end)


async def check_small_files(end: TargetEnd) -> None:
    """Store small files together and read them together, at an end that does that."""
    if not isinstance(end, SmallTarget) or not isinstance(end, SmallSource) or not end.stores_together(4096):
        return
    contents = {f"together/{size}": os.urandom(size) for size in SIZES if end.stores_together(size)}
    entries = [Entry(name=name, size=len(data), mtime_ns=MTIME_NS, mode=0o640) for name, data in contents.items()]
    files = [(entry, contents[entry.name]) for entry in entries]
    tokens = await end.store_together(files, lambda name: secrets.token_hex(8))
    stored_ones = [(entry, token) for entry, token in zip(entries, tokens, strict=True) if token]
    assert None not in tokens and not await end.settle(stored_ones)

    found = [entry for name, entry in (await listed(end)).items() if name in contents]

    assert {(entry.name, entry.size, entry.mtime_ns, entry.mode) for entry in found} == {
        (entry.name, entry.size, entry.mtime_ns, entry.mode) for entry in entries
    }
    read_ones = [entry for entry in found if end.reads_together(entry)]
    assert len(read_ones) == len(found)
    *together, gone = await end.read_together([*read_ones, Entry(name="together/gone", size=5)])
    assert gone is None
    assert {entry.name: bytes(data or b"") for entry, data in zip(read_ones, together, strict=True)} == contents


async def _files_come_back_with_their_facts(end: TargetEnd) -> None:
    contents = {f"folder {size}/deep/file-{size}": os.urandom(size) for size in SIZES}
    for name, data in contents.items():
        half = len(data) // 2
        ranges = [(half, len(data) - half), (0, half)] if len(data) > 2**20 + 1 else []
        entry = Entry(name=name, size=len(data), mtime_ns=MTIME_NS, mode=0o640)
        await stored(end, entry, BytesBody(data, ranges=ranges))

    found = await listed(end)

    assert {name: entry.size for name, entry in found.items()} == {name: len(data) for name, data in contents.items()}
    for name, data in contents.items():
        assert await read(end, found[name]) == data
        assert await read(end, found[name], len(data) // 3, len(data) // 2) == data[len(data) // 3 :][: len(data) // 2]
        opened = await end.open(found[name])
        await opened.close()
        assert found[name].mtime_ns == MTIME_NS or opened.entry.mtime_ns == MTIME_NS
        assert 0o640 in (found[name].mode, opened.entry.mode)


async def _a_file_that_ends_early_never_shows(end: TargetEnd) -> None:
    before = await listed(end)
    for size in (100, 12 * 2**20):
        body = BytesBody(os.urandom(size // 2), size)
        with pytest.raises(SourceChangedError):
            await stored(end, Entry(name=f"early-{size}", size=size), body)
    assert set(await listed(end)) == set(before)


async def _a_file_that_changes_meanwhile_never_shows(end: TargetEnd) -> None:
    """Neither as a new file nor in the place of an older one."""
    older = Entry(name="stays", size=5, mtime_ns=MTIME_NS)
    await stored(end, older, BytesBody(b"older"))
    before = await listed(end)
    for name, size in (("stays", 5), ("changes", 100), ("changes-large", 12 * 2**20)):
        ranges = [(0, size // 2), (size // 2, size - size // 2)] if size > 2**20 else []
        body = BytesBody(os.urandom(size), ranges=ranges, changes=True)
        with pytest.raises(SourceChangedError):
            await stored(end, Entry(name=name, size=size), body)
    assert set(await listed(end)) == set(before)
    assert await read(end, before["stays"]) == b"older"


async def _replacing_and_removing(end: TargetEnd) -> None:
    entry = Entry(name="replaced", size=5, mtime_ns=MTIME_NS)
    await stored(end, entry, BytesBody(b"first"))
    await stored(end, entry, BytesBody(b"other"))
    assert await read(end, (await listed(end))["replaced"]) == b"other"

    await end.remove("replaced")
    await end.remove("replaced")

    assert "replaced" not in await listed(end)
    with pytest.raises(NotThereError):
        await read(end, Entry(name="replaced"))


async def _names(end: TargetEnd) -> None:
    for name in ("..", "a/../../b", "a//b", ".", "n" * 2000, "\ud800"):
        assert end.refuse(name), name
    for name in ("blank space/ü%20#?&+.txt", "..almost", "a.b"):
        assert end.refuse(name) is None
        await stored(end, Entry(name=name, size=2, mtime_ns=MTIME_NS), BytesBody(b"hi"))
        assert await read(end, (await listed(end))[name]) == b"hi"
