"""A model of one server's speed: a fixed cost per answer, and a cost per byte.

Pure: elapsed time is an argument. It decides nothing; plans compare its predictions with what happens.
"""

from __future__ import annotations

from grid.values import define

FIRST_LATENCY_S = 0.1
FIRST_BYTE_S = 1 / 10e6
"""Assumed cost of an answer, and of each byte of it, from a server that has not answered yet."""

SMALL_ANSWER = 32768
"""An answer of fewer bytes updates the latency, a longer one the rate."""

LEAST_ELAPSED_S = 1e-4
FIRST_WEIGHT = 1.0
NEXT_WEIGHT = 0.2
"""Weight of the newest answer in the running average. The first small answer may include connecting, so a quicker second one replaces it."""

SLOWEST_WEIGHT = 0.2
"""The weight of a faster answer when it lowers the slowest recent time."""

QUICKEST_WEIGHT = 0.02
"""The weight of a slower answer when it raises the quickest time. It is small because answers take long on busy machines, too."""

DISTANT_S = 0.02
"""If even the quickest answer takes this long, lines are the limit, and not processors."""


def are_distant(quickest_s: float) -> bool:
    """Whether servers are so far away that lines are the limit. quickest_s: their quickest answer; inf if none is known."""
    return DISTANT_S <= quickest_s < float("inf")


def slowest_recent(before_s: float, now_s: float) -> float:
    """The new slowest recent time: a slower answer replaces it, faster ones lower it step by step."""
    return max(now_s, before_s + SLOWEST_WEIGHT * (now_s - before_s))


def quickest_recent(before_s: float, now_s: float) -> float:
    """The new quickest time: a quicker answer replaces it, slower ones raise it by small steps. before_s: inf before the first."""
    return now_s if now_s < before_s else before_s + QUICKEST_WEIGHT * (now_s - before_s)


@define(kw_only=True, eq=False)
class Latency:
    """What one server's answers cost, in seconds. The flags say whether each number has been measured.

    slowest_s: how long the slowest recent small answers took; 0 before the first. quickest_s: how long the quickest took, which shows
    how far away the server is; inf before the first. first_s: how long the first took, if it was the only one; 0 otherwise.
    """

    latency_s: float = FIRST_LATENCY_S
    byte_s: float = FIRST_BYTE_S
    slowest_s: float = 0.0
    quickest_s: float = float("inf")
    first_s: float = 0.0
    latency_known: bool = False
    rate_known: bool = False

    def time_of(self, size: int) -> float:
        """Expected seconds for an answer of `size` bytes when the server has nothing else to do."""
        return self.latency_s + size * self.byte_s

    def knows_speed_of(self, size: int) -> bool:
        """Whether answers of about that many bytes have been measured."""
        return self.rate_known if size >= SMALL_ANSWER else self.latency_known

    def learn(self, size: int, queued: int, elapsed_s: float) -> None:
        """Learn from an answer of `size` bytes that took elapsed_s. queued: bytes outstanding when it was requested, its own included."""
        elapsed_s = max(elapsed_s, LEAST_ELAPSED_S)
        if size < SMALL_ANSWER:
            self._learn_latency(elapsed_s)
        else:
            weight = NEXT_WEIGHT if self.rate_known else FIRST_WEIGHT
            self.byte_s += weight * (self.byte_s_of(max(size, queued), elapsed_s) - self.byte_s)
            self.rate_known = True

    def _learn_latency(self, elapsed_s: float) -> None:
        is_first, was_connecting = not self.latency_known, elapsed_s < self.first_s
        weight = FIRST_WEIGHT if is_first or was_connecting else NEXT_WEIGHT
        self.latency_s += weight * (elapsed_s - self.latency_s)
        self.slowest_s = slowest_recent(self.slowest_s, elapsed_s)
        self.quickest_s = quickest_recent(self.quickest_s, elapsed_s)
        self.first_s = elapsed_s if is_first else 0.0
        self.latency_known = True

    def byte_s_of(self, size: int, elapsed_s: float) -> float:
        """What each of `size` bytes cost that took elapsed_s together."""
        return max(elapsed_s - self.latency_s, elapsed_s / 4) / size
