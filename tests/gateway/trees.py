"""A gateway of files, directories, and operations over them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from grid.caps import UnknownCap, parse_cap
from grid.storage.files.paths import SHARES, index_name
from tests.support.web_gateway import WebGateway, web_gateway


def gateway_of_trees(folder: Path, **options: Any) -> AbstractAsyncContextManager[WebGateway]:
    """A whole gateway over servers in memory. folder: for spooled uploads."""
    return web_gateway(folder, **options)


def lose(web: WebGateway, text: str, count: int) -> None:
    """Make that many servers lose their shares of an object."""
    cap = parse_cap(text)
    assert not isinstance(cap, UnknownCap) and cap.storage_index is not None
    name = index_name(cap.storage_index)
    folder = f"{SHARES}/{name[:2]}/{name}"
    holders = [disk for disk in web.disks if disk.exists(folder) and disk.list_directory(folder)]
    for disk in holders[:count]:
        for number, _ in disk.list_directory(folder):
            disk.unlink(f"{folder}/{number}")
    assert len(holders) >= count
