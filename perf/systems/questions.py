"""The warm process's operations with Grid's library, one coroutine for each.

Every request opens its object anew, so nothing is remembered from an earlier one; a gateway that just served the same
file would know more.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from grid.caps import ChkCap, DirectoryCap, ExtentCap, KnownCap, LitCap, UnknownCap, parse_cap
from grid.cli.arguments.sources import FileSource
from grid.cli.arguments.targets import DescriptorSink
from grid.directory.edits import SetChild
from grid.directory.file_store import FileStore
from grid.directory.node import Directory
from grid.extents.files import open_immutable
from grid.immutable.put import put
from grid.mutable.create import create_mutable
from grid.mutable.node import MutableFile
from grid.node.client import Client
from grid.ports import Buffer, Observer, Sink
from perf.campaigns.campaign import Format


class TimedSink:
    """A sink that records when its first bytes arrived."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.first: float | None = None

    async def write(self, data: Buffer) -> None:
        """Pass the bytes on."""
        if self.first is None:
            self.first = time.perf_counter()
        await self._sink.write(data)


async def put_one(client: Client, observer: Observer, path: str, format: Format) -> str:
    """Store the file and return its capability."""
    with Path(path).open("rb") as file:
        source = FileSource(file, client.runtime.cpu)
        grid = client.grid(await client.servers(), observer)
        if format == "chk":
            return (await put(source, grid)).cap.to_string()
        return (await create_mutable(source, grid, format=format)).to_string()


async def get_one(client: Client, observer: Observer, text: str, path: str, offset: int, length: int | None) -> float:
    """Read a range or the whole file to the path; return the seconds until its first byte."""
    started = time.perf_counter()
    cap = known_cap(text)
    with _opened(path) as descriptor:
        sink = TimedSink(DescriptorSink(descriptor, client.runtime.cpu))
        if isinstance(cap, ChkCap | LitCap | ExtentCap):
            await open_immutable(cap, client.grid(await client.servers(), observer)).read(sink, offset, length)
        else:
            await (await open_mutable(client, observer, cap)).read(sink, offset, length)
    return (sink.first or time.perf_counter()) - started


async def overwrite(client: Client, observer: Observer, text: str, offset: int, path: str) -> None:
    """Overwrite bytes of a mutable file with those of the file at the path."""
    data = Path(path).read_bytes()
    await (await open_mutable(client, observer, known_cap(text))).update(offset, data)


async def open_mutable(client: Client, observer: Observer, cap: KnownCap) -> MutableFile:
    """The mutable file, opened anew."""
    return MutableFile(cap, client.grid(await client.servers(), observer))


def known_cap(text: str) -> KnownCap:
    """Parse a capability; ValueError if its kind is unknown."""
    cap = parse_cap(text)
    if isinstance(cap, UnknownCap):
        raise ValueError("not a cap of a kind that is known")
    return cap


@contextmanager
def _opened(path: str) -> Iterator[int]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def make_directory(client: Client, observer: Observer) -> str:
    """Create an empty directory and return its write capability."""
    return (await (await _store(client, observer)).create_directory()).to_string()


async def add_children(
    client: Client, observer: Observer, text: str, children: Sequence[Sequence[str]], at_once: bool
) -> None:
    """Link children, as (name, capability), to a directory: in one change, or in one each."""
    directory = await _open(client, observer, text)
    edits = [SetChild(name, known_cap(cap)) for name, cap in children]
    for change in [edits] if at_once else [[edit] for edit in edits]:
        await directory.edit(change)


async def list_children(client: Client, observer: Observer, text: str) -> list[str]:
    """The names in a directory."""
    return list(await (await _open(client, observer, text)).list())


async def _open(client: Client, observer: Observer, text: str) -> Directory:
    cap = known_cap(text)
    if not isinstance(cap, DirectoryCap):
        raise ValueError("not the cap of a directory")
    return (await _store(client, observer)).directory(cap)


async def _store(client: Client, observer: Observer) -> FileStore:
    return FileStore(grid=client.grid(await client.servers(), observer))
