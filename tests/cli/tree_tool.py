"""Inspects and creates directories of a grid for tests: python -m tests.cli.tree_tool CLIENT WHAT PATH [MORE], JSON out.

A process of its own, as a reactor runs once; and nothing of the commands under test.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from grid.caps import DirectoryCap, KnownCap, parse_cap
from grid.cli.connection import run_with_client
from grid.directory.edits import SetChild
from grid.directory.file_store import FileStore
from grid.directory.node import Directory
from grid.directory.pack import Child
from grid.node.client import Client
from grid.node.directory import open_directory


class _Memory:
    def __init__(self) -> None:
        self.data = b""

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        self.data += bytes(data)


async def use(client: Client, what: str, path: str, *more: str) -> Any:
    """What the command line asks for."""
    store = FileStore(grid=client.grid(await client.servers()))
    aliases = client.directory.private / "aliases"
    if what == "alias":
        aliases.write_text(f"{path} {(await store.create_directory()).to_string()}\n")
        return None
    root = parse_cap(aliases.read_text().split()[1])
    assert isinstance(root, DirectoryCap)
    names = [name for name in path.partition(":")[2].split("/") if name]
    if what in ("link", "mutable"):
        cap = parse_cap(more[0]) if what == "link" else await store.put_mutable(more[0].encode())
        assert isinstance(cap, KnownCap)
        parent = await store.directory(root).make_directories(names[:-1])
        await parent.edit([SetChild(names[-1], cap)])
        return cap.to_string()
    found = (await store.directory(root).get(names)).target
    if what == "read":
        memory = _Memory()
        await store.read(found, memory)  # type: ignore[arg-type]
        return memory.data.decode()
    assert isinstance(found, DirectoryCap)
    directory = store.directory(found)
    if what == "tree":
        return await _tree(store, directory)
    return {name: _describe(child) for name, child in (await directory.list()).items()}


def _describe(child: Child) -> tuple[str, dict[str, Any]]:
    assert isinstance(child.target, KnownCap)
    kind = "dirnode" if isinstance(child.target, DirectoryCap) else "filenode"
    about = {"cap": child.target.to_string(), "mutable": child.target.is_mutable, "metadata": dict(child.metadata)}
    return kind, about


async def _tree(store: FileStore, directory: Directory) -> dict[str, str]:
    found = {}
    for name, child in (await directory.list()).items():
        assert isinstance(child.target, KnownCap)
        if isinstance(child.target, DirectoryCap):
            below = await _tree(store, store.directory(child.target))
            found.update({f"{name}/{rest}": cap for rest, cap in below.items()})
        else:
            found[name] = child.target.to_string()
    return found


def main(directory: str, *arguments: str) -> None:
    """Print the answer."""
    print(json.dumps(run_with_client(open_directory(Path(directory)), lambda client: use(client, *arguments))))


if __name__ == "__main__":
    main(*sys.argv[1:])
