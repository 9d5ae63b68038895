"""How long we have waited for a client since it last made real progress."""

from __future__ import annotations

from grid.ports import Clock


class BodyRate:
    """Measures how long we have waited for a client, starting again after each `step` bytes.

    Time when we do not wait for the client, for example while the storage works, does not count.
    """

    def __init__(self, clock: Clock, step: int) -> None:
        self._clock = clock
        self._step = step
        self._moved = 0
        self._waited_s = 0.0
        self._since: float | None = None

    @property
    def waited_s(self) -> float:
        """How long we have waited."""
        return self._waited_s + (0.0 if self._since is None else self._clock.now() - self._since)

    def begin(self) -> None:
        """Start again, with nobody waiting."""
        self._moved, self._waited_s, self._since = 0, 0.0, None

    def wait(self) -> None:
        """Start waiting for the client, unless we already do."""
        if self._since is None:
            self._since = self._clock.now()

    def rest(self) -> None:
        """Stop waiting for the client."""
        self._waited_s, self._since = self.waited_s, None

    def move(self, size: int) -> None:
        """Note that this many bytes came."""
        self._moved += size
        if self._moved >= self._step:
            self._moved, self._waited_s = 0, 0.0
            if self._since is not None:
                self._since = self._clock.now()
