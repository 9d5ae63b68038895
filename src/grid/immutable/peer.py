"""How one server behaves during one operation: what is outstanding there, how long an answer should take."""

from __future__ import annotations

from attrs import define

from grid.errors import GridError
from grid.ports import ServerId

FIRST_LATENCY_S = 0.1
FIRST_RATE = 10e6
"""Octets a second assumed of a server that has not answered yet."""

HEDGE_FLOOR_S = 0.75
"""No answer is late before this: a busy machine's scheduling alone costs tenths of a second."""

HEDGE_FACTOR = 4.0
"""An answer is late when it takes this many times what was expected."""

GIVE_UP_FLOOR_S = 20.0
GIVE_UP_FACTOR = 20.0
"""When a server is taken for dead, and what it was asked for is withdrawn."""

SMALL_ANSWER = 32768
"""Octets below which an answer's time tells of the latency, above which of the rate."""


@define(kw_only=True, eq=False)
class Peer:
    """A server's place in the order, its load and its speed, as seen by one plan."""

    server_id: ServerId
    order: int
    latency_s: float = FIRST_LATENCY_S
    rate: float = FIRST_RATE
    outstanding_bytes: int = 0
    answer_count: int = 0
    slow: bool = False
    error: GridError | None = None

    def expected_s(self, size: int) -> float:
        """Seconds until `size` more octets should have come."""
        return self.latency_s + (self.outstanding_bytes + size) / self.rate

    def sent(self, size: int, now: float) -> Watch:
        """Note a request for `size` octets; the watch says when its answer is late, and when it is hopeless."""
        expected = self.expected_s(size)
        self.outstanding_bytes += size
        return Watch(
            peer=self,
            size=size,
            sent_at=now,
            late_at=now + max(HEDGE_FLOOR_S, HEDGE_FACTOR * expected),
            give_up_at=now + max(GIVE_UP_FLOOR_S, GIVE_UP_FACTOR * expected),
        )


@define(kw_only=True, eq=False)
class Watch:
    """One outstanding request of a peer."""

    peer: Peer
    size: int
    sent_at: float
    late_at: float
    give_up_at: float
    late: bool = False

    def answered(self, now: float) -> None:
        """The answer came: learn from it how fast the peer is."""
        peer = self.peer
        elapsed = max(now - self.sent_at, 1e-4)
        size, queued = self.size, peer.outstanding_bytes
        self.ended()
        weight = 0.5 if peer.answer_count == 0 else 0.2
        if size < SMALL_ANSWER:
            peer.latency_s += weight * (elapsed - peer.latency_s)
        else:
            rate = queued / max(elapsed - peer.latency_s, elapsed / 4)
            peer.rate += weight * (rate - peer.rate)
        peer.answer_count += 1
        peer.slow = False

    def ended(self) -> None:
        """The request is over, whatever came of it."""
        self.peer.outstanding_bytes -= self.size
        self.size = 0

    def check(self, now: float) -> bool:
        """Whether the request has just become late; True once."""
        if self.late or now < self.late_at:
            return False
        self.late = self.peer.slow = True
        return True

    @property
    def wake_at(self) -> float:
        """When to check it next."""
        return self.give_up_at if self.late else self.late_at
