"""What people see of a file that was stored, and of one they ask about. [spec webapi 3, 4.1]"""

from __future__ import annotations

from grid.caps import KnownCap
from grid.directory.pack import Child
from grid.gateway.http.answers import Answer, page
from grid.gateway.http.exchange import Exchange
from grid.gateway.pages.info import render_info
from grid.gateway.pages.links import object_path, with_arguments
from grid.gateway.pages.shell import crumbs
from grid.gateway.pages.upload_results import render_upload_results


def upload_page(cap: KnownCap, name: str = "") -> Answer:
    """An unlinked immutable file was stored. name: of the file at its sender's."""
    return page(render_upload_results(cap, name))


def info_page(exchange: Exchange, child: Child, size: int | None, name: str = "") -> Answer:
    """What is known of a file or of an object of an unknown kind. size: bytes, None if they are not known.

    name: of the file, "" if it has none.
    """
    root, *names = exchange.segments[1:]
    is_by_path = exchange.segments[0] in ("uri", "cap") and any(names)
    address = with_arguments(object_path(root, names), t="info")
    return page(render_info(child, size, name, crumbs(root, names, last=address) if is_by_path else None))
