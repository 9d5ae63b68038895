"""Notices that an attempt to connect gets no sign of life, long before the attempt ends.

It only reports. It never ends an attempt; others decide what the silence means.
"""

from __future__ import annotations

from collections.abc import Callable

from grid.ports import Clock, Timer

QUIET_S = 1.5
"""How long a server may give no sign of life: twice the longest round trip on earth, and one lost packet."""

TICKS = 3

OnQuiet = Callable[[float], None]
"""Called for a quiet attempt, with the time of the server's last sign of life, or of the attempt's start."""


def ignore_quiet(since: float) -> None:
    """Ignore the report."""


class ConnectWatch:
    """Watches one attempt to connect, from its start until the server's first bytes. Reports at most once."""

    def __init__(self, clock: Clock, on_quiet: OnQuiet) -> None:
        """Starts watching; stops with end()."""
        self._clock = clock
        self._on_quiet = on_quiet
        self._timer: Timer | None = None
        self._since = clock.now()
        self._tick(TICKS)

    def accepted(self) -> None:
        """Note that the server's side has accepted the connection: now the server itself must speak."""
        if self._timer is not None:
            self.end()
            self._since = self._clock.now()
            self._tick(TICKS)

    def end(self) -> None:
        """Stop: the server has spoken, or the attempt is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self, left: int) -> None:
        """Wait in ticks: time when this process was too busy to listen counts as one tick, however long."""
        self._timer = None
        if left:
            self._timer = self._clock.call_later(QUIET_S / TICKS, lambda: self._tick(left - 1))
        else:
            self._on_quiet(self._since)
