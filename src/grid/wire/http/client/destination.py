"""The connections to one address, and which of them a request takes.

It owns how long an idle connection counts as open, and that a long message over a long line goes to a quick connection:
congestion control keeps its own idea of the line for each of them, and may take seconds to correct it.
[docs/decisions/0514-quick-connections-first.md]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from twisted.internet.defer import Deferred, DeferredSemaphore

from grid.ports import Buffer
from grid.values import define, field
from grid.wire.http.client.connection import IDLE_S, LONG_IDLE_S, ClientConnection
from grid.wire.http.client.spread import MUCH_SLOWER, TURNS, Direction, Line

FRESH_S = 30.0
"""A server does not close a connection that was idle for less than this just when a request is sent: 1.20 waits for 60 s, and
we close it ourselves after 45. A new connection would cost two more round trips."""
LONG_FRESH_S = LONG_IDLE_S - IDLE_S + FRESH_S
"""The same where idle connections are kept for LONG_IDLE_S: a server of ours waits for 300 s."""


@define(eq=False)
class Destination:
    """The connections to one address. turns: for the parts of long messages, first come, first served."""

    idle: list[ClientConnection] = field(factory=list)
    busy: set[ClientConnection] = field(factory=set)
    connecting: int = 0
    waiters: deque[Deferred[None]] = field(factory=deque)
    opening: set[Deferred[None]] = field(factory=set)
    line: Line = field(factory=Line)
    turns: Mapping[Direction, DeferredSemaphore] = field(
        factory=lambda: {direction: DeferredSemaphore(count) for direction, count in TURNS.items()}
    )
    accepted_at: float | None = None
    """When the latest attempt was accepted, while the server has not answered on it yet."""
    greeting: Sequence[Buffer] = field(default=(), repr=False)
    """A request that costs the server nothing, if it then keeps the idle connection for as long as ours do."""

    @property
    def is_patient(self) -> bool:
        """Whether the server keeps idle connections for as long as ours do."""
        return bool(self.greeting)

    @property
    def idle_s(self) -> float:
        """How long to keep an idle connection."""
        return LONG_IDLE_S if self.is_patient and self.line.is_long else IDLE_S

    @property
    def fresh_s(self) -> float:
        """How long after a request a connection is surely still open."""
        return LONG_FRESH_S if self.is_patient and self.line.is_long else FRESH_S

    @property
    def count(self) -> int:
        """Connections, including those that are being opened."""
        return len(self.idle) + len(self.busy) + self.connecting

    async def wait(self) -> None:
        """Wait until a connection may be free."""
        turn: Deferred[None] = Deferred(self._forget)
        self.waiters.append(turn)
        await turn

    def wake_one(self) -> None:
        """Let the one who has waited longest look again."""
        if self.waiters:
            self.waiters.popleft().callback(None)

    def bring_forward(self, direction: Direction) -> None:
        """Let the next request have the idle connection that was the quickest in that direction.

        One that was not measured comes after those that were, and before those that are much slower than another one.
        """
        if len(self.idle) < 2:
            return
        best = max(connection.rates.get(direction, 0.0) for connection in (*self.idle, *self.busy))
        quickest = max(self.idle, key=lambda connection: connection.rates.get(direction, best / MUCH_SLOWER))
        self.idle.remove(quickest)
        self.idle.append(quickest)

    def _forget(self, turn: Deferred[None]) -> None:
        if turn in self.waiters:
            self.waiters.remove(turn)
