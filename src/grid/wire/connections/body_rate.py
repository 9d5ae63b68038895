"""How long a client has been waited for since it last moved on by more than a trickle."""

from __future__ import annotations

from grid.ports import Clock


class BodyRate:
    """Counts the time in which we wait for a client, starting again with each `step` bytes that it moves.

    Time in which it is not waited for, as when the storage is at work, is not held against it.
    """

    def __init__(self, clock: Clock, step: int) -> None:
        self._clock = clock
        self._step = step
        self._moved = 0
        self._waited_s = 0.0
        self._since: float | None = None

    @property
    def waited_s(self) -> float:
        """How long it was waited for."""
        return self._waited_s + (0.0 if self._since is None else self._clock.now() - self._since)

    def begin(self) -> None:
        """Start from nothing, with nobody waiting."""
        self._moved, self._waited_s, self._since = 0, 0.0, None

    def wait(self) -> None:
        """The client is waited for from now on, if it was not already."""
        if self._since is None:
            self._since = self._clock.now()

    def rest(self) -> None:
        """It is not waited for."""
        self._waited_s, self._since = self.waited_s, None

    def move(self, size: int) -> None:
        """That many bytes came."""
        self._moved += size
        if self._moved >= self._step:
            self._moved, self._waited_s = 0, 0.0
            if self._since is not None:
                self._since = self._clock.now()
