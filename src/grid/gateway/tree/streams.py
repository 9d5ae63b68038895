"""POST `t=stream-manifest` and `t=stream-deep-check`: a line per object of a tree, during the walk. [spec webapi 7.3]

A client that goes away ends the walk, and a slow client slows it down. An unreadable directory gets a line that says
so, and the walk continues with the rest; only an unreadable root ends it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

from grid.caps import DirectoryCap
from grid.directory.deep_check import Checked, deep_check
from grid.directory.node_json import describe_unit
from grid.directory.stats import Stats
from grid.directory.walk import walk
from grid.errors import GridError
from grid.gateway.history.recorded_store import RecordedStore
from grid.gateway.http.answers import AnyAnswer, lines
from grid.gateway.http.exchange import Exchange
from grid.gateway.tree.checks import CheckOptions, UnreadDirectories, check_document, repair_document, walk_fault
from grid.ports import Sink

STREAMS = frozenset({"stream-manifest", "stream-deep-check"})

Json = dict[str, object]


async def stream_tree(exchange: Exchange, root: DirectoryCap) -> AnyAnswer:
    """Stream the lines that `t` requests; BadRequest for invalid arguments."""
    store = exchange.gateway.store
    options = CheckOptions.of(exchange.arguments) if exchange.arguments.t == "stream-deep-check" else None

    async def write(sink: Sink) -> None:
        units = manifest_units(store, root) if options is None else check_units(store, root, options)
        told = b""
        try:
            async with aclosing(units):
                async for unit in units:
                    await sink.write(_line(unit))
        except GridError as error:
            told = error_lines(error)
        if told:
            await sink.write(told)

    return lines(write)


async def manifest_units(store: RecordedStore, root: DirectoryCap) -> AsyncGenerator[Json, None]:
    """Yield one unit per object, then the statistics. If the root cannot be read, its error follows its unit."""
    stats, unread = Stats(), UnreadDirectories()
    held: Json | None = None  # A directory is reported before the walk learns that it is unreadable.
    failure: GridError | None = None
    async with aclosing(walk(store, root, on_unreadable=unread.note)) as visits:
        try:
            async for visited in visits:
                if held is not None:
                    yield unread.explain(held)
                stats.add(visited)
                unit = describe_unit(visited.path, visited.target, visited.cap)
                held = unit if visited.is_directory and visited.children is None else None
                if held is None:
                    yield unit
        except GridError as error:
            failure = error
    if held is not None:
        yield unread.explain(held)
    if failure is not None:
        raise failure
    yield {"type": "stats", "stats": stats.to_json()}


async def check_units(store: RecordedStore, root: DirectoryCap, options: CheckOptions) -> AsyncGenerator[Json, None]:
    """Yield one unit with the health of each object, then the statistics.

    If the root cannot be read, its error follows its unit.
    """
    stats, unread = Stats(), UnreadDirectories()
    checks = deep_check(
        store,
        root,
        verify=options.verify,
        add_lease=options.add_lease,
        repair=options.repair,
        on_unreadable=unread.note,
    )
    async with aclosing(checks):
        async for checked in checks:
            stats.add(checked.visited)
            yield unread.explain(check_unit(checked, repair=options.repair))
    yield {"type": "stats", "stats": stats.to_json()}


def check_unit(checked: Checked, *, repair: bool) -> Json:
    """The line about one object's health."""
    visited = checked.visited
    unit = describe_unit(visited.path, visited.target, visited.cap)
    index = str(unit["storage-index"])
    if repair:
        unit["check-and-repair-results"] = repair_document(checked, index, in_tree=True)
    else:
        unit["check-results"] = check_document(checked, index)
    return unit


def error_lines(error: GridError) -> bytes:
    """End a stream that cannot continue: `ERROR: type(message)`, and an explanation."""
    kind, colon, message = str(walk_fault(error)).partition(": ")
    if not colon or not kind.isidentifier():
        kind, message = type(error).__name__, str(walk_fault(error))
    shown = " ".join(message.split())
    return f"ERROR: {kind}({shown})\nThe walk cannot go on.\n".encode()


def _line(unit: Json) -> bytes:
    return (json.dumps(unit, ensure_ascii=True) + "\n").encode("ascii")
