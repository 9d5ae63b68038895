"""Orders requests on the same paths. Pure.

Clients send requests without waiting for answers: sshfs asks for the attributes of a file right after requesting its
creation. Requests on unrelated paths run in parallel. A change waits for all earlier requests on its paths; any other
request waits only for earlier changes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from twisted.internet.defer import Deferred

from grid.sftp.paths import Path
from grid.values import define, field

T = TypeVar("T")


@define(eq=False)
class _Turn:
    """A request in progress. ended: fired for each request that waits for it."""

    paths: Sequence[Path]
    is_change: bool
    ended: list[Deferred[None]] = field(factory=list)

    def must_wait_for(self, other: _Turn) -> bool:
        """Whether the two requests must not run in parallel."""
        return (self.is_change or other.is_change) and any(
            one[: len(two)] == two[: len(one)] for one in self.paths for two in other.paths
        )


@define(eq=False)
class PathTurns:
    """The order of one session's requests."""

    _turns: list[_Turn] = field(init=False, factory=list)

    async def run(self, paths: Sequence[Path], work: Callable[[], Awaitable[T]], *, is_change: bool) -> T:
        """Run the work once all earlier requests that it must follow have ended, successfully or not.

        The order is that of the calls, so callers must not await anything before this.
        """
        turn = _Turn(paths, is_change)
        earlier = [other for other in self._turns if turn.must_wait_for(other)]
        self._turns.append(turn)
        try:
            for other in earlier:
                if other in self._turns:
                    ended: Deferred[None] = Deferred()
                    other.ended.append(ended)
                    await ended
            return await work()
        finally:
            self._turns.remove(turn)
            for waiting in turn.ended:
                if not waiting.called:
                    waiting.callback(None)
