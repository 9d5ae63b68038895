"""Surveys of a tree behind a gateway, which streams one line per object. [spec webapi 7.3]

1.20 gives up at the first directory that it cannot read. Then the survey continues by itself, with single listings and
checks, skipping what was already reported, so the result is as complete as that of a direct survey.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from grid.caps import DirectoryCap, UnknownChild
from grid.cli.surveys import CheckFlags, DirectSurvey, OnStats
from grid.cli.webapi.http import STREAM_STALL_S, GatewayClient, parse_json
from grid.cli.webapi.refusals import GatewayError, stream_error
from grid.cli.webapi.shapes import parse_health, parse_mended, parse_visited
from grid.cli.webapi.store import GatewayStore
from grid.directory.deep_check import Checked
from grid.directory.walk import OnUnreadable, Path, Visited
from grid.errors import GridError
from grid.limits import MAX_CHECK_JSON
from grid.values import frozen

_OF_DIRECTORIES = ("size-directories", "largest-directory")
"""Statistics that listings do not contain."""

Unit = Mapping[str, object]


class _BrokenOffError(Exception):
    """The stream ended with `ERROR:`."""


@frozen
class GatewaySurvey:
    """A survey that reads a gateway's streams."""

    store: GatewayStore

    async def visit(
        self, root: DirectoryCap, on_stats: OnStats, on_unreadable: OnUnreadable | None = None
    ) -> AsyncGenerator[Visited, None]:
        """As `Survey.visit`."""
        seen: set[Path] = set()
        try:
            async for unit in self._units(root, [("t", "stream-manifest")], on_stats):
                visited = parse_visited(unit)
                seen.add(visited.path)
                yield visited
                _note_unread(unit, visited, on_unreadable)
            return
        except _BrokenOffError:
            pass
        async for visited in DirectSurvey(self.store).visit(root, _without_sizes(on_stats), on_unreadable):
            if visited.path not in seen:
                yield visited

    async def check(
        self, root: DirectoryCap, flags: CheckFlags, on_stats: OnStats, on_unreadable: OnUnreadable | None = None
    ) -> AsyncGenerator[Checked, None]:
        """As `Survey.check`."""
        asked = {"verify": flags.verify, "add-lease": flags.add_lease, "repair": flags.repair}
        query = [("t", "stream-deep-check"), *((name, "true") for name, wanted in asked.items() if wanted)]
        seen: set[Path] = set()
        try:
            async for unit in self._units(root, query, on_stats):
                checked = _checked(unit, repair=flags.repair)
                seen.add(checked.visited.path)
                yield checked
                _note_unread(unit, checked.visited, on_unreadable)
            return
        except _BrokenOffError:
            pass
        direct = DirectSurvey(self.store)
        async for checked in direct.check(root, flags, _without_sizes(on_stats), on_unreadable):
            if checked.visited.path not in seen:
                yield checked

    async def _units(
        self, root: DirectoryCap, query: list[tuple[str, str]], on_stats: OnStats
    ) -> AsyncGenerator[Unit, None]:
        """Yield the lines of a stream except the last, which goes to on_stats; _BrokenOffError."""
        finished = False
        async with aclosing(_lines(self.store.client, root, query)) as lines:
            async for line in lines:
                if line.startswith(b"ERROR:"):
                    raise _BrokenOffError
                unit = parse_json(line)
                if finished or not isinstance(unit, dict):
                    raise GatewayError("the gateway's stream has a line that does not belong there")
                if unit.get("type") == "stats":
                    finished = True
                    on_stats(_stats(unit.get("stats")))
                else:
                    yield unit
        if not finished:
            raise GatewayError("the gateway's stream ended too early")


async def _lines(
    client: GatewayClient, root: DirectoryCap, query: list[tuple[str, str]]
) -> AsyncGenerator[bytes, None]:
    """Yield lines as they arrive; GatewayError for one that is too long."""
    begun: list[bytes] = []
    size = 0
    async with client.ask("POST", ["uri", root.to_string()], query, once=True, stall_s=STREAM_STALL_S) as answer:
        while piece := await answer.body.next():
            *whole, rest = piece.split(b"\n")
            for line in whole:
                line = b"".join((*begun, line))
                begun.clear()
                size = 0
                if line.strip():
                    yield line
            begun.append(rest)
            size += len(rest)
            if size > MAX_CHECK_JSON:
                raise GatewayError("a line of the gateway's stream is too long")
    line = b"".join(begun)
    if line.strip():
        yield line


def _note_unread(unit: Unit, visited: Visited, on_unreadable: OnUnreadable | None) -> None:
    """Report a directory that the gateway cannot read; without on_unreadable, raise its error."""
    why = unit.get("error")
    if why is None or not visited.is_directory:
        return
    error = _failure(why)
    if on_unreadable is None:
        raise error
    on_unreadable(visited, error)


def _checked(unit: Unit, *, repair: bool) -> Checked:
    visited = parse_visited(unit)
    if isinstance(visited.target, UnknownChild):
        return Checked(visited=visited)
    results = unit.get("check-and-repair-results" if repair else "check-results")
    if not isinstance(results, dict):
        raise GatewayError("a line of the gateway's stream has no results")
    if not repair:
        error = _failure(results["error"]) if "error" in results else None
        return Checked(visited=visited, health=None if error else parse_health(results), error=error)
    mended = parse_mended(results)
    if "error" in results:
        before = results.get("pre-repair-results")
        is_known = isinstance(before, dict) and "error" not in before
        return Checked(visited=visited, health=mended.before if is_known else None, error=_failure(results["error"]))
    is_literal = not mended.before.storage_index
    return Checked(visited=visited, health=mended.before, repair=None if is_literal else mended)


def _failure(why: object) -> GridError:
    return stream_error(why.encode("utf-8", "replace") if isinstance(why, str) else b"")


def _stats(results: object) -> Mapping[str, object]:
    if not isinstance(results, dict):
        raise GatewayError("malformed statistics in the gateway's answer")
    return results


def _without_sizes(on_stats: OnStats) -> OnStats:
    """Drop statistics that listings cannot provide."""
    return lambda stats: on_stats({name: value for name, value in stats.items() if name not in _OF_DIRECTORIES})
