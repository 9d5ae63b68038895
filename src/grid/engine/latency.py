"""One model of a server's speed: a fixed cost for each answer, and a cost for each byte of it.

Pure: time enters as seconds that passed. It decides nothing; plans compare what it expects with what they see.
"""

from __future__ import annotations

from attrs import define

FIRST_LATENCY_S = 0.1
FIRST_BYTE_S = 1 / 10e6
"""What an answer and a byte of it are taken to cost of a server that has not answered yet."""

SMALL_ANSWER = 32768
"""Bytes below which an answer's time tells of the latency, above which of the rate."""

LEAST_ELAPSED_S = 1e-4
FIRST_WEIGHT = 1.0
NEXT_WEIGHT = 0.2
"""How much one answer counts against those before it."""


@define(kw_only=True, eq=False)
class Latency:
    """What one server's answers cost, in seconds. The flags say whether an answer has taught either number."""

    latency_s: float = FIRST_LATENCY_S
    byte_s: float = FIRST_BYTE_S
    latency_known: bool = False
    rate_known: bool = False

    def time_of(self, size: int) -> float:
        """Seconds for an answer of `size` bytes when nothing else is asked for."""
        return self.latency_s + size * self.byte_s

    def learn(self, size: int, queued: int, elapsed_s: float) -> None:
        """An answer of `size` bytes came after elapsed_s; `queued` bytes were asked for by then, itself among them."""
        elapsed_s = max(elapsed_s, LEAST_ELAPSED_S)
        if size < SMALL_ANSWER:
            weight = NEXT_WEIGHT if self.latency_known else FIRST_WEIGHT
            self.latency_s += weight * (elapsed_s - self.latency_s)
            self.latency_known = True
        else:
            weight = NEXT_WEIGHT if self.rate_known else FIRST_WEIGHT
            byte_s = max(elapsed_s - self.latency_s, elapsed_s / 4) / max(size, queued)
            self.byte_s += weight * (byte_s - self.byte_s)
            self.rate_known = True
