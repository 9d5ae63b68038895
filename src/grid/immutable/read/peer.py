"""How one server behaves during one operation: what is outstanding there, how long an answer should take."""

from __future__ import annotations

from attrs import define, field

from grid.engine.latency import Latency
from grid.engine.server_memory import SHORT_PATIENCE_S
from grid.errors import GridError
from grid.ports import ServerId

HEDGE_FLOOR_S = 0.5
"""No answer is late before this: a busy machine's scheduling alone costs tenths of a second."""

HEDGE_FACTOR = 4.0
"""An answer is late when it takes this many times what was expected."""

SILENCE_FLOOR_S = 1.5
COMPARED_SILENCE_FLOOR_S = 0.85
SILENCE_FACTOR = 8.0
"""A server is silent when nothing at all has come from it for so long, though an answer is due; sooner once others have
answered, because then it is not the line that is slow."""

GIVE_UP_FLOOR_S = 20.0
GIVE_UP_FACTOR = 20.0
SLOWEST_RATE = 10e3
"""A silent server is taken for dead, and what it was asked for withdrawn, after this long, plus what an answer
takes at this rate in bytes a second: where every server is so slow, patience is all that helps."""


@define(kw_only=True, eq=False)
class Peer:
    """A server's place in the order, its load and its speed, as seen by one plan.

    latency: what its answers cost, as the client remembers it. is_doubtful: whether it was silent before this plan, and has
    not answered the plan yet. is_compared: whether the rate of another server is known. heard_at: when it last answered anything.
    """

    server_id: ServerId
    order: int
    latency: Latency = field(factory=Latency)
    is_doubtful: bool = False
    is_compared: bool = False
    outstanding_bytes: int = 0
    heard_at: float = float("-inf")
    slow: bool = False
    error: GridError | None = None

    def expected_s(self, size: int) -> float:
        """Seconds until `size` more bytes should have come."""
        return self.time_of(self.outstanding_bytes + size)

    def time_of(self, size: int) -> float:
        """Seconds for `size` bytes if nothing else is asked for."""
        return self.latency.time_of(size)

    def sent(self, size: int, now: float) -> Watch:
        """Note a request for `size` bytes; the watch says when its answer is late, and when it is hopeless."""
        self.outstanding_bytes += size
        return Watch(peer=self, size=size, queued=self.outstanding_bytes, sent_at=now)


@define(kw_only=True, eq=False)
class Watch:
    """One outstanding request of a peer. queued: its bytes, and those asked for before and not come by then.

    All times follow what is learned of the peer meanwhile.
    """

    peer: Peer
    size: int
    queued: int
    sent_at: float
    late: bool = False
    silent: bool = False

    @property
    def late_at(self) -> float:
        """When the answer has taken longer than it should, as far as is known."""
        if self.peer.is_doubtful:
            return self.sent_at + SHORT_PATIENCE_S
        return self.sent_at + max(HEDGE_FLOOR_S, HEDGE_FACTOR * self.peer.time_of(self.queued))

    @property
    def silent_at(self) -> float:
        """When the peer has been silent for too long to be merely slow."""
        if self.peer.is_doubtful:
            return self.sent_at + SHORT_PATIENCE_S
        floor = COMPARED_SILENCE_FLOOR_S if self.peer.is_compared else SILENCE_FLOOR_S
        return self._heard_at + max(floor, SILENCE_FACTOR * self.peer.time_of(self.size))

    @property
    def give_up_at(self) -> float:
        """When nothing is to be hoped for any more."""
        patience = max(GIVE_UP_FLOOR_S, GIVE_UP_FACTOR * self.peer.time_of(self.size))
        return self._heard_at + patience + self.size / SLOWEST_RATE

    @property
    def _heard_at(self) -> float:
        return max(self.sent_at, self.peer.heard_at)

    def answered(self, now: float) -> None:
        """The answer came: learn from it how fast the peer is."""
        peer = self.peer
        peer.latency.learn(self.size, self.queued, now - self.sent_at)
        self.ended()
        peer.is_doubtful = False
        peer.heard_at = now
        peer.slow = False

    def ended(self) -> None:
        """The request is over, whatever came of it."""
        self.peer.outstanding_bytes -= self.size
        self.size = 0

    def check(self, now: float) -> bool:
        """Note whether the answer is late now, and the peer silent; whether all hope is gone."""
        self.late = now >= self.late_at
        self.silent = now >= self.silent_at
        if self.late:
            self.peer.slow = True
        return now >= self.give_up_at

    @property
    def wake_at(self) -> float:
        """When to check it next, after the last check."""
        times = [] if self.late else [self.late_at]
        times += [] if self.silent else [self.silent_at]
        return min(times, default=self.give_up_at)
