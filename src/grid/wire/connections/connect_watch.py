"""Noticing that nothing comes of an attempt to connect, long before the attempt ends.

It only tells; it never ends an attempt, and what the silence means is for others to say.
"""

from __future__ import annotations

from collections.abc import Callable

from grid.ports import Clock, Timer

QUIET_S = 1.5
"""How long a server may give no sign at all: twice the round trip to the other side of the world, and a lost packet."""

TICKS = 3

OnQuiet = Callable[[float], None]
"""Called for a quiet attempt, with the time of the server's last sign or of the attempt's beginning."""


def ignore_quiet(since: float) -> None:
    """Nobody wants to know."""


class ConnectWatch:
    """One attempt to connect, from its beginning until the server has said anything. It tells once at most."""

    def __init__(self, clock: Clock, on_quiet: OnQuiet) -> None:
        """Watches from now on, until end()."""
        self._clock = clock
        self._on_quiet = on_quiet
        self._timer: Timer | None = None
        self._since = clock.now()
        self._tick(TICKS)

    def accepted(self) -> None:
        """The server's end has taken the connection: from now on it is the server's own turn to speak."""
        if self._timer is not None:
            self.end()
            self._since = self._clock.now()
            self._tick(TICKS)

    def end(self) -> None:
        """The server has spoken, or the attempt is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self, left: int) -> None:
        """In ticks: time that this process was too busy to listen counts as one of them, however long."""
        self._timer = None
        if left:
            self._timer = self._clock.call_later(QUIET_S / TICKS, lambda: self._tick(left - 1))
        else:
            self._on_quiet(self._since)
