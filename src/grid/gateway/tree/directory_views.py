"""Views of directories, checks and tree operations: the pages, and the JSON listing in slices. [spec webapi 5.2, 6.1, 7.1, 8, 10]

Owns how many children one slice renders: a directory may have a million, and all other requests wait meanwhile.
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
from grid.gateway.http.exchange import Exchange
from grid.gateway.pages.directory import DirectoryView, render_directory, render_rename
from grid.gateway.pages.entries import SORT_KEYS, SortKey
from grid.gateway.pages.health import render_check_results
from grid.gateway.pages.info import render_info
from grid.gateway.pages.links import object_path
from grid.gateway.pages.paging import MAX_FIND, parse_page
from grid.gateway.pages.tree_operation import render_tree_operation
from grid.ports import CpuPool, Sink
from grid.runtime import SMALL_WORK

WHOLE_SIZE = 4 * 2**20
"""Bytes of JSON that are answered at once, with their length: some thousand children."""

_SLICE_SIZE = 2**20
"""Characters after which a slice ends, however few children it has: names and metadata may be long, and their JSON longer."""

_SMALL_SLICE_SIZE = 2**18
"""The same of a slice that is made at once, and not on the pool."""

_TYPE = "text/plain"


async def listing_answer(
    cpu: CpuPool, cap: DirectoryCap, children: Mapping[str, Child], warning: str | None = None
) -> AnyAnswer:
    """The answer to `t=json`: the same bytes, however many children there are. warning: what its user should know."""
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
        """Slice by slice, as they are taken."""
        for piece in pieces:
            await sink.write(piece)
        pieces.clear()
        while piece := await slices.next():
            await sink.write(piece)
        await sink.write(tail)

    return StreamedAnswer(200, _TYPE, None, (), write)


class _Slices:
    """The children of a directory as they stand in its JSON, some at a time."""

    def __init__(self, cpu: CpuPool, children: Mapping[str, Child]) -> None:
        self._cpu = cpu
        self._items = iter(children.items())
        self._left = len(children)
        self._is_small = len(children) <= SMALL_WORK
        self._before = b""

    async def next(self) -> bytes:
        """The next of them; nothing behind the last."""
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
    """What stands before the first child and after the last."""
    # No text in it has this: a quotation mark inside one has a backslash before it.
    children = b'"children": {'
    head, found, tail = json_answer(describe_directory(cap, {}, warning)).body.partition(children + b"}")
    assert found
    return head + children + b"\n   ", b"\n  }" + tail


def _render(items: Iterator[tuple[str, Child]], most: int) -> tuple[int, bytes]:
    """The next children, as they stand three levels down, up to about that many characters; and how many they are."""
    texts, size = [], 0
    for name, child in islice(items, SMALL_WORK):
        texts.append(f"{json.dumps(name)}: {_render_child(child)}")
        size += len(texts[-1])
        if size >= most:
            break
    return len(texts), ",\n   ".join(texts).encode("ascii")


def _render_child(child: Child) -> str:
    # A line feed inside a string is written as two other characters, so that these are all between values.
    return json.dumps(describe_child(child), indent=1).replace("\n", "\n   ")


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
