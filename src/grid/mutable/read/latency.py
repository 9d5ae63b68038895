"""How fast each server answers, as seen by the operations on one file: when an answer is late, when it is hopeless.

Pure: time enters as `now`. Decides nothing about shares.
"""

from __future__ import annotations

from attrs import define, field

from grid.engine.latency import Latency
from grid.engine.server_memory import SHORT_PATIENCE_S, ServerMemory
from grid.ports import ServerId

LATE_FLOOR_S = 0.75
LATE_FACTOR = 4.0
"""An answer is late when it takes longer than this and this many times what was expected: time for another share."""

SILENCE_FLOOR_S = 1.5
SILENCE_FACTOR = 8.0
"""A server is silent when nothing at all has come from it for so long, though an answer is due."""

QUIET_S = 4.0
QUIET_RATE = 100e3
"""An answer is given up after this long, plus its bytes at this rate a second, when others have answered meanwhile."""

HOPELESS_S = 20.0
SLOWEST_RATE = 10e3
"""The same when nobody has: where every server is so slow, patience is all that helps."""

DOUBTFUL_S = 0.9
"""The same of a server that kept silent lately, however many others answer."""


@define(kw_only=True, eq=False)
class ServerPace:
    """latency: what its answers cost. slow: its last answer is overdue. queued: bytes asked for that have not come.

    heard_at: when it last answered anything about this file.
    """

    latency: Latency = field(factory=Latency)
    slow: bool = False
    queued: int = 0
    heard_at: float = float("-inf")

    def expected_s(self, size: int) -> float:
        """Seconds until `size` more bytes should have come."""
        return self.latency.time_of(self.queued + size)


@define(kw_only=True, eq=False)
class Watch:
    """One outstanding question. queued: its bytes and those asked for before.

    is_doubtful: whether the server kept silent on such questions lately. late, silent: what the last check has noted.
    """

    paces: Paces
    pace: ServerPace
    size: int
    queued: int
    sent_at: float
    is_doubtful: bool = False
    late: bool = False
    silent: bool = False

    @property
    def late_at(self) -> float:
        """When the answer takes longer than it should."""
        if self.is_doubtful:
            return self.sent_at + SHORT_PATIENCE_S
        return self.sent_at + max(LATE_FLOOR_S, LATE_FACTOR * self.pace.latency.time_of(self.queued))

    @property
    def silent_at(self) -> float:
        """When nothing has come for too long for a server that is merely slow."""
        if self.is_doubtful:
            return self.sent_at + SHORT_PATIENCE_S
        return self._heard_at + max(SILENCE_FLOOR_S, SILENCE_FACTOR * self.pace.latency.time_of(self.size))

    @property
    def hopeless_at(self) -> float:
        """When it is given up."""
        if self.is_doubtful:
            return self.sent_at + DOUBTFUL_S
        return self.given_up_at

    @property
    def given_up_at(self) -> float:
        """When it is given up although nobody else has what was asked for."""
        if self.paces.heard_at <= self.sent_at:
            return self._heard_at + HOPELESS_S + self.queued / SLOWEST_RATE
        expected_s = SILENCE_FACTOR * self.pace.latency.time_of(self.queued)
        return self._heard_at + max(QUIET_S, expected_s) + self.queued / QUIET_RATE

    @property
    def wake_at(self) -> float:
        """When to check it next, after the last check."""
        times = [] if self.late else [self.late_at]
        times += [] if self.silent else [self.silent_at]
        return min(times, default=self.given_up_at)

    def check(self, now: float) -> bool:
        """Note whether the answer is late now, and the server silent; whether either is news."""
        before = self.late, self.silent
        self.late = self.late or now >= self.late_at
        self.silent = self.silent or now >= self.silent_at
        self.pace.slow = self.pace.slow or self.late
        return before != (self.late, self.silent)

    def end(self, now: float | None) -> None:
        """The question is over: answered at `now`, or (None) not."""
        pace = self.pace
        pace.queued -= self.size
        if now is None:
            return
        pace.slow = False
        pace.heard_at = self.paces.heard_at = now
        pace.latency.learn(self.size, self.queued, now - self.sent_at)

    @property
    def _heard_at(self) -> float:
        return max(self.sent_at, self.pace.heard_at)


@define
class Paces:
    """The pace of every server, kept from one operation on a file to the next. heard_at: when any of them answered last."""

    memory: ServerMemory = field(factory=ServerMemory)
    heard_at: float = float("-inf")
    _paces: dict[ServerId, ServerPace] = field(factory=dict)

    def of(self, server_id: ServerId) -> ServerPace:
        """That server's pace."""
        pace = self._paces.get(server_id)
        if pace is None:
            pace = self._paces[server_id] = ServerPace(latency=self.memory.latency(server_id))
        return pace

    def is_doubtful(self, server_id: ServerId, kind: type) -> bool:
        """Whether that server kept silent on requests of that class lately."""
        return self.memory.is_doubtful(server_id, kind.__name__)

    def ask(self, server_id: ServerId, size: int, now: float, kind: type) -> Watch:
        """Note a request of that class, whose answer has `size` bytes."""
        pace = self.of(server_id)
        pace.queued += size
        is_doubtful = self.is_doubtful(server_id, kind)
        return Watch(paces=self, pace=pace, size=size, queued=pace.queued, sent_at=now, is_doubtful=is_doubtful)
