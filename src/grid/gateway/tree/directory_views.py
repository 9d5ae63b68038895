"""Views of directories, checks and tree operations: pages, and the JSON listing in slices. [spec webapi 5.2, 6.1, 7.1,
8, 10]

Owns how many children one slice renders: a directory may have a million, and other requests wait while a slice is made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice

from attrs import evolve

from grid.caps import DirectoryCap
from grid.directory.node_json import describe_child, describe_directory
from grid.directory.pack import Child
from grid.gateway.http.answers import Answer, AnyAnswer, StreamedAnswer, json_answer, page
from grid.gateway.http.compression import accepts_gzip, compressed
from grid.gateway.http.exchange import Exchange
from grid.gateway.pages.directory import DirectoryView, Shown, render_directory, render_rename
from grid.gateway.pages.entries import parse_order
from grid.gateway.pages.health import render_check_results
from grid.gateway.pages.info import render_info
from grid.gateway.pages.links import object_path
from grid.gateway.pages.paging import MAX_FIND, parse_page
from grid.gateway.pages.shell import with_styles
from grid.gateway.pages.tree_check import TreeCheck, render_tree_check
from grid.gateway.pages.tree_operation import render_tree_operation
from grid.ports import CpuPool, Sink
from grid.runtime import SMALL_WORK

WHOLE_SIZE = 4 * 2**20
"""Bytes of JSON sent at once, with their length: a few thousand children."""

_SLICE_SIZE = 2**20
"""Characters that end a slice, however few children it has: names and metadata may be long, and their JSON longer."""

_SMALL_SLICE_SIZE = 2**18
"""The same for a slice rendered directly rather than on the pool."""

_TYPE = "text/plain"


async def listing_answer(
    cpu: CpuPool, cap: DirectoryCap, children: Mapping[str, Child], warning: str | None = None
) -> AnyAnswer:
    """Answer `t=json`; the bytes do not depend on the slicing. warning: shown to the user."""
    if not children:
        return json_answer(describe_directory(cap, children, warning))
    slices = _Slices(cpu, children)
    head, tail = _frame(cap, warning)
    pieces, size = [head], 0
    while size <= WHOLE_SIZE:
        piece = await slices.next()
        if not piece:
            return Answer(200, _TYPE, b"".join((*pieces, tail)))
        pieces.append(piece)
        size += len(piece)

    async def write(sink: Sink) -> None:
        """Render slice by slice, as the client takes them."""
        for piece in pieces:
            await sink.write(piece)
        pieces.clear()
        while piece := await slices.next():
            await sink.write(piece)
        await sink.write(tail)

    return StreamedAnswer(200, _TYPE, None, (), write)


class _Slices:
    """Renders a directory's children as JSON, a slice at a time."""

    def __init__(self, cpu: CpuPool, children: Mapping[str, Child]) -> None:
        self._cpu = cpu
        self._items = iter(children.items())
        self._left = len(children)
        self._is_small = len(children) <= SMALL_WORK
        self._before = b""

    async def next(self) -> bytes:
        """The next slice; empty after the last."""
        if not self._left:
            return b""
        if self._is_small:
            self._is_small = False
            count, piece = _render(self._items, _SMALL_SLICE_SIZE)
        else:
            count, piece = await self._cpu.run(_render, self._items, _SLICE_SIZE)
        self._left -= count
        before, self._before = self._before, b",\n   "
        return before + piece


def _frame(cap: DirectoryCap, warning: str | None) -> tuple[bytes, bytes]:
    """The JSON before the first child and after the last."""
    # No string inside the JSON contains this: a quotation mark in a string is escaped.
    children = b'"children": {'
    head, found, tail = json_answer(describe_directory(cap, {}, warning)).body.partition(children + b"}")
    assert found
    return head + children + b"\n   ", b"\n  }" + tail


def _render(items: Iterator[tuple[str, Child]], most: int) -> tuple[int, bytes]:
    """Render children until about `most` characters, indented three levels; return their number and the JSON."""
    texts, size = [], 0
    for name, child in islice(items, SMALL_WORK):
        texts.append(f"{json.dumps(name)}: {_render_child(child)}")
        size += len(texts[-1])
        if size >= most:
            break
    return len(texts), ",\n   ".join(texts).encode("ascii")


def _render_child(child: Child) -> str:
    # Line feeds inside strings are escaped, so every one here is between values.
    return json.dumps(describe_child(child), indent=1).replace("\n", "\n   ")


def view_of(
    exchange: Exchange,
    cap: DirectoryCap,
    children: Mapping[str, Child] | None = None,
    problem: str | None = None,
    warning: str | None = None,
    last_check: tuple[str, bool] | None = None,
) -> DirectoryView:
    """The view of a directory at the request's path. problem, warning, last_check: see DirectoryView."""
    root, *names = exchange.segments[1:]
    if names and not names[-1]:
        del names[-1]
    sort, descending = parse_order(exchange.arguments.shown("sort"), exchange.arguments.shown("order"))
    return DirectoryView(
        cap=cap,
        root=root.removesuffix("\n"),
        names=tuple(names),
        children=children or {},
        problem=problem,
        warning=warning,
        servers=exchange.gateway.client.servers() if problem is not None else (),
        sort=sort,
        descending=descending,
        page=parse_page(exchange.arguments.shown("page")),
        find=(exchange.arguments.shown("find") or "")[:MAX_FIND],
        past=exchange.gateway.store.journal.changes(cap),
        last_check=last_check,
        shown=Shown(
            has_slash=exchange.segments[-1] == "",
            name=(exchange.arguments.shown("filename") or "")[:MAX_FIND] if not names else "",
            is_visit=exchange.is_visit,
        ),
    )


def listing_page(view: DirectoryView, accept_encoding: str | None = None, *, is_opened: bool = True) -> Answer:
    """The page of a directory, including one that cannot be read. accept_encoding: the client's header.

    is_opened: as a page, not fetched by one of ours, which has the styles. They are in the page if it is compressed.
    """
    html = render_directory(view)
    if is_opened and accepts_gzip(accept_encoding):
        html = with_styles(html)
    return compressed(page(html), accept_encoding)


def directory_info_page(view: DirectoryView) -> Answer:
    """The page about a directory, made without reading it."""
    name = view.names[-1] if view.names else ""
    return page(render_info(Child(target=view.cap), None, name, is_visit=view.shown.is_visit))


def rename_form_page(view: DirectoryView, name: str) -> Answer:
    """The forms that rename, move or delete a child."""
    return page(render_rename(view, name))


def check_page(exchange: Exchange, document: Mapping[str, object], return_to: str | None) -> Answer:
    """The results of a check, or of a check and repair. document: as in JSON."""
    root, *names = exchange.segments[1:]
    path = object_path(root.removesuffix("\n"), names)
    return page(render_check_results(document, exchange.gateway.client.servers(), path, return_to))


def operation_page(
    kind: str, document: Mapping[str, object], *, finished: bool, error: str | None, status: int = 200
) -> Answer:
    """A running or finished operation over a tree. The page reloads itself while the operation runs."""
    return _refreshed(page(render_tree_operation(kind, document, finished=finished, error=error), status), finished)


def tree_check_page(view: TreeCheck, status: int = 200) -> Answer:
    """A check of everything below a directory, started from its page. The page reloads itself while the check runs."""
    return _refreshed(page(render_tree_check(view), status), view.state != "running")


def _refreshed(found: Answer, finished: bool) -> Answer:
    return found if finished else evolve(found, headers=(*found.headers, ("Refresh", "60")))
