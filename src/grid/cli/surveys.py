"""Surveys of everything below a directory: a walk, optionally with health, and statistics at the end.

The survey of a direct store walks and checks itself; that of a gateway (grid.cli.webapi.surveys) reads a stream.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Protocol

from grid.caps import DirectoryCap
from grid.directory.deep_check import Checked, deep_check
from grid.directory.stats import Stats
from grid.directory.store import Store
from grid.directory.walk import OnUnreadable, Visited, walk
from grid.values import frozen

OnStats = Callable[[Mapping[str, object]], None]
"""Called at the end with the STATS object of [spec webapi 7.2]."""


@frozen(kw_only=True)
class CheckFlags:
    """What a deep check does with each object: verify every share, add or renew a lease, repair it."""

    verify: bool = False
    add_lease: bool = False
    repair: bool = False


class Survey(Protocol):
    """The interface of both surveys. Raises the errors of `walk`.

    on_unreadable: as in `walk`; None makes an error end it.
    """

    def visit(
        self, root: DirectoryCap, on_stats: OnStats, on_unreadable: OnUnreadable | None = None
    ) -> AsyncGenerator[Visited, None]:
        """Yield the root and everything below it, each object once."""

    def check(
        self, root: DirectoryCap, flags: CheckFlags, on_stats: OnStats, on_unreadable: OnUnreadable | None = None
    ) -> AsyncGenerator[Checked, None]:
        """The same, each with its health."""


@frozen
class DirectSurvey:
    """A survey that walks a store."""

    store: Store

    async def visit(
        self, root: DirectoryCap, on_stats: OnStats, on_unreadable: OnUnreadable | None = None
    ) -> AsyncGenerator[Visited, None]:
        """As `Survey.visit`."""
        stats = Stats()
        async for visited in walk(self.store, root, on_unreadable=on_unreadable):
            stats.add(visited)
            yield visited
        on_stats(stats.to_json())

    async def check(
        self, root: DirectoryCap, flags: CheckFlags, on_stats: OnStats, on_unreadable: OnUnreadable | None = None
    ) -> AsyncGenerator[Checked, None]:
        """As `Survey.check`."""
        stats = Stats()
        async for checked in deep_check(
            self.store,
            root,
            verify=flags.verify,
            add_lease=flags.add_lease,
            repair=flags.repair,
            on_unreadable=on_unreadable,
        ):
            stats.add(checked.visited)
            yield checked
        on_stats(stats.to_json())
