"""A gateway of files and directories, and of operations over them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from grid.gateway import opresource, unlinked
from grid.gateway.mkdir import make_unlinked
from grid.gateway.tree_resource import tree_resource
from tests.support.web_gateway import WebGateway, web_gateway


def gateway_of_trees(folder: Path, **options: Any) -> AbstractAsyncContextManager[WebGateway]:
    """`/uri`, `/cap`, `/file` and `/operations`, over servers in memory. folder: for what it spools."""
    handlers = {**unlinked.routes(tree_resource, make_unlinked), **opresource.routes()}
    return web_gateway(folder, handlers=handlers, **options)
