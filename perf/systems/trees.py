"""What the warm process does with Grid's directories; each question opens a store of its own."""

from __future__ import annotations

from collections.abc import Sequence

from grid.caps import DirectoryCap
from grid.directory.edits import SetChild
from grid.directory.file_store import FileStore
from grid.directory.node import Directory
from grid.node.client import Client
from grid.ports import Observer
from perf.systems.questions import known_cap


async def make_directory(client: Client, observer: Observer) -> str:
    """The write cap of a new empty directory."""
    return (await (await _store(client, observer)).create_directory()).to_string()


async def add_children(
    client: Client, observer: Observer, text: str, children: Sequence[Sequence[str]], at_once: bool
) -> None:
    """Link children, of name and cap, to a directory: all in one change, or each by a change of its own."""
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
