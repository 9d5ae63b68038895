"""`/uri/$CAP` and `/uri/$DIR/NAME` with only files in them: a minimal walk for tests."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from grid.caps import DirectoryCap
from grid.directory.pack import Child
from grid.gateway.faults import NotImplementedHere
from grid.gateway.files.downloads import get_file
from grid.gateway.files.file_changes import PathEntry, delete_child, post_file, put_cap, put_file
from grid.gateway.files.file_resource import routes
from grid.gateway.http.answers import AnyAnswer
from grid.gateway.http.exchange import Exchange, parse_child
from grid.gateway.http.routing import Handler
from tests.support.web_gateway import WebGateway, web_gateway


async def below(exchange: Exchange) -> AnyAnswer:
    """What an entry answers."""
    entry = await find(exchange)
    match exchange.method, exchange.arguments.t:
        case ("GET" | "HEAD", _):
            assert entry.child is not None
            return await get_file(exchange, entry.child, name=entry.name, by_path=entry.parent is not None)
        case "PUT", "":
            return await put_file(exchange, entry)
        case "PUT", "uri":
            return await put_cap(exchange, entry)
        case "POST", _:
            return await post_file(exchange, entry)
        case "DELETE", _:
            return await delete_child(exchange, entry)
    raise NotImplementedHere("nothing else is tried here")


async def find(exchange: Exchange) -> PathEntry:
    """The entry that the path names."""
    _, cap, *path = exchange.segments
    root = parse_child(cap)
    if not path:
        return PathEntry(child=root)
    assert isinstance(root.target, DirectoryCap) and len(path) == 1
    parent = exchange.gateway.store.directory(root.target)
    return PathEntry(parent=parent, name=path[0], child=(await parent.list()).get(path[0]))


async def no_directories(exchange: Exchange) -> AnyAnswer:
    """Makes none."""
    raise NotImplementedHere("no directory is made here")


def handlers() -> Mapping[str, Handler]:
    """All of them."""
    return routes(below, no_directories)


def gateway_of_files(folder: Path, **options: Any) -> AbstractAsyncContextManager[WebGateway]:
    """A gateway that has files, and directories of one level."""
    return web_gateway(folder, handlers=handlers(), **options)


async def folder_of(web: WebGateway, **children: Child) -> str:
    """The path of a new directory with these children."""
    return f"/uri/{(await web.gateway.store.create_directory(children)).to_string()}"
