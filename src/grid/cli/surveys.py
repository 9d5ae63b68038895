"""Looking at everything below a directory: what a walk finds, and the health of it, with the statistics at the end.

The survey of a direct store walks and checks by itself; that of a gateway (grid.cli.webapi.surveys) reads a stream.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Protocol

from attrs import frozen

from grid.caps import DirectoryCap
from grid.directory.deep_check import Checked, deep_check
from grid.directory.stats import Stats
from grid.directory.store import Store
from grid.directory.walk import OnUnreadable, Visited, walk

OnStats = Callable[[Mapping[str, object]], None]
"""Called with the STATS object of [spec webapi 7.2] when everything was looked at."""


@frozen(kw_only=True)
class CheckFlags:
    """What a deep check does to each object: verify every share, add or renew our lease, repair it."""

    verify: bool = False
    add_lease: bool = False
    repair: bool = False


class Survey(Protocol):
    """Both ways to look at a tree. The errors of `walk`; on_unreadable: as for `walk`, None to end with the error."""

    def visit(
        self, root: DirectoryCap, on_stats: OnStats, on_unreadable: OnUnreadable | None = None
    ) -> AsyncGenerator[Visited, None]:
        """Everything below the root and the root itself, each object once."""

    def check(
        self, root: DirectoryCap, flags: CheckFlags, on_stats: OnStats, on_unreadable: OnUnreadable | None = None
    ) -> AsyncGenerator[Checked, None]:
        """The same, each with its health."""


@frozen
class DirectSurvey:
    """Walks a store."""

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
