"""The mutable half of a soak's client: carries out perf.soak.mutable_plan's operations and compares what it reads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from grid.caps import DirectoryCap, LitCap, parse_cap
from grid.crypto.aes import CtrCipher
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.file_store import FileStore
from grid.engine.grid import Encoding
from grid.node.client import Client
from grid.sinks import BytesSink

OPEN_STORES = 8
"""Views of the grid kept, each with its open files."""


class MutableWork:
    """The clients' mutable files and directories."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self._clients = clients
        self._stores: OrderedDict[tuple[int, tuple[int, ...]], FileStore] = OrderedDict()

    async def do(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an operation; {"cap"} of a new object, {"wrong"} if a read returned none of the acceptable
        versions.
        """
        store = await self._store(operation["client"], operation["encoding"], keep=operation.get("keep", True))
        match operation["op"], operation["kind"]:
            case "mutable-create", "directory":
                return {"cap": (await store.create_directory()).to_string()}
            case "mutable-create", kind:
                cap = await store.put_mutable(bytes_of(operation["version"]), format=kind)
                return {"cap": cap.to_string()}
            case "mutable-read", "directory":
                return await _list(store, operation)
            case "mutable-read", _:
                return await _read(store, operation)
            case "mutable-overwrite", _:
                await store.open_mutable(parse_cap(operation["cap"])).overwrite(bytes_of(operation["version"]))  # type: ignore[arg-type]
            case _, "directory":
                await _edit(store, operation)
            case _:
                key, offset, length = operation["layer"]
                data = keystream(key, length)
                await store.open_mutable(parse_cap(operation["cap"])).update(offset, data)  # type: ignore[arg-type]
        return {}

    async def _store(self, index: int, encoding: Sequence[int], *, keep: bool) -> FileStore:
        name = index, tuple(encoding)
        store = self._stores.pop(name, None)
        if store is None or not keep:
            client = self._clients[index]
            k, n, happy = encoding
            grid = client.grid(await client.servers())
            store = FileStore(grid=evolve(grid, encoding=Encoding(k=k, n=n, happy=happy)))
        self._stores[name] = store
        while len(self._stores) > OPEN_STORES:
            self._stores.popitem(last=False)
        return store


def keystream(key: str, length: int) -> bytes:
    """The first bytes of the keystream of a key, which is given in hex."""
    return CtrCipher(bytes.fromhex(key)).crypt(bytes(length))


def bytes_of(version: Mapping[str, Any]) -> bytes:
    """The contents of a version of a file."""
    raw = bytearray(version["size"])
    for key, offset, length in version["layers"]:
        raw[offset : offset + length] = keystream(key, length)
    return bytes(raw)


async def _read(store: FileStore, operation: Mapping[str, Any]) -> dict[str, Any]:
    offset, length = operation["offset"], operation["length"]
    sink = BytesSink()
    await store.open_mutable(parse_cap(operation["cap"])).read(sink, offset, length)  # type: ignore[arg-type]
    for index, version in enumerate(operation["allowed"]):
        end = version["size"] if length is None else offset + length
        if bytes_of(version)[offset:end] == sink.data:
            return {"version": index}
    return {"wrong": f"{len(sink.data)} bytes came that are of none of {len(operation['allowed'])} versions"}


async def _list(store: FileStore, operation: Mapping[str, Any]) -> dict[str, Any]:
    cap = parse_cap(operation["cap"])
    assert isinstance(cap, DirectoryCap)
    found = {name: _text(child.target) for name, child in (await store.directory(cap).list()).items()}
    for index, version in enumerate(operation["allowed"]):
        if version["children"] == found:
            return {"version": index}
    return {"wrong": f"{len(found)} children that are of none of {len(operation['allowed'])} versions"}


async def _edit(store: FileStore, operation: Mapping[str, Any]) -> None:
    cap = parse_cap(operation["cap"])
    assert isinstance(cap, DirectoryCap)
    name, to = operation["name"], operation["to"]
    if to is None:
        await store.directory(cap).edit([RemoveChild(name, must_exist=False)])
    else:
        target = parse_cap(to)
        assert isinstance(target, LitCap)
        await store.directory(cap).edit([SetChild(name, target)])


def _text(target: Any) -> str:  # noqa: ANN401 - any cap
    return str(target.to_string())
