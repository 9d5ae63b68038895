"""How long a way to a server has left calls without an answer. Pure.

It counts the time that calls waited until they were given up, each moment once, since the last answer of any kind. So a
caller with little patience counts as one with much does; it just takes more of its calls.
"""

from __future__ import annotations

SILENCE_S = 0.5
"""Waiting in vain for longer than this counts against a way: no longer than any operation waits for a server it can spare."""

SLOWEST_BYTES_PER_S = 128 * 1024
"""A call may take the time for its data at this pace besides: a slow line is not silent."""


class Silence:
    """The waiting in vain on two ways."""

    def __init__(self) -> None:
        self._waited_s = [0.0, 0.0]
        self._counted_until = [float("-inf"), float("-inf")]

    def heard(self, way: int, now: float) -> None:
        """An answer has come that way: it is not silent, and calls that are under way may still be answered."""
        self._waited_s[way] = 0.0
        self._counted_until[way] = now

    def gave_up(self, way: int, began_at: float, now: float, size: int) -> float:
        """A call that moves that many bytes was given up; seconds of silence if that is too much by now, else 0."""
        self._waited_s[way] += max(0.0, now - max(began_at, self._counted_until[way]))
        self._counted_until[way] = now
        waited_s = self._waited_s[way]
        if waited_s < SILENCE_S + size / SLOWEST_BYTES_PER_S:
            return 0.0
        self._waited_s[way] = 0.0
        return waited_s
