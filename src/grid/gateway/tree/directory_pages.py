"""What people see of a directory, of a check, and of an operation over a tree. [spec webapi 5.2, 6.1, 7.1, 10]

Gives the pages what they show: where the directory was found, and what the servers are called.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from grid.caps import DirectoryCap
from grid.directory.pack import Child
from grid.gateway.http.answers import Answer, page
from grid.gateway.http.exchange import Exchange
from grid.gateway.pages.check_results import render_check_results
from grid.gateway.pages.directory import DirectoryView, render_directory, render_rename
from grid.gateway.pages.entries import SORT_KEYS, SortKey
from grid.gateway.pages.info import render_info
from grid.gateway.pages.links import object_path
from grid.gateway.pages.paging import MAX_FIND, parse_page
from grid.gateway.pages.tree_operation import render_tree_operation


def view_of(
    exchange: Exchange,
    cap: DirectoryCap,
    children: Mapping[str, Child] | None = None,
    problem: str | None = None,
    warning: str | None = None,
) -> DirectoryView:
    """A directory as its page shows it, found at the request's path. problem, warning: see DirectoryView."""
    root, *names = exchange.segments[1:]
    if names and not names[-1]:
        del names[-1]
    return DirectoryView(
        cap=cap,
        root=root.removesuffix("\n"),
        names=tuple(names),
        children=children or {},
        problem=problem,
        warning=warning,
        servers=exchange.gateway.client.servers() if problem is not None else (),
        sort=_sort_key(exchange),
        descending=exchange.arguments.shown("order") == "desc",
        page=parse_page(exchange.arguments.shown("page")),
        find=(exchange.arguments.shown("find") or "")[:MAX_FIND],
    )


def _sort_key(exchange: Exchange) -> SortKey:
    """The column that the page is sorted by: the name unless another is asked for."""
    given = exchange.arguments.shown("sort")
    return next((key for key in SORT_KEYS if key == given), "name")


def listing_page(view: DirectoryView) -> Answer:
    """A directory, also one that cannot be read."""
    return page(render_directory(view))


def directory_info_page(view: DirectoryView) -> Answer:
    """What is known of a directory without reading it."""
    return page(render_info(Child(target=view.cap), None, view.names[-1] if view.names else ""))


def rename_form_page(view: DirectoryView, name: str) -> Answer:
    """The forms that rename, move or delete a child."""
    return page(render_rename(view, name))


def check_page(exchange: Exchange, document: Mapping[str, object], return_to: str | None) -> Answer:
    """What a check, or a check and repair, has found. document: as JSON has it."""
    root, *names = exchange.segments[1:]
    path = object_path(root.removesuffix("\n"), names)
    return page(render_check_results(document, exchange.gateway.client.servers(), path, return_to))


def operation_page(
    kind: str, document: Mapping[str, object], *, finished: bool, error: str | None, status: int = 200
) -> Answer:
    """An operation over a tree, running or not; it comes again by itself while it runs."""
    found = page(render_tree_operation(kind, document, finished=finished, error=error), status)
    return found if finished else evolve(found, headers=(*found.headers, ("Refresh", "60")))
