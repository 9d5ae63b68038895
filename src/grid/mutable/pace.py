"""How fast each server answers, as seen by the operations on one file: when an answer is late, when it is hopeless.

Pure: time enters as `now`. Decides nothing about shares.
"""

from __future__ import annotations

from attrs import define, field

from grid.engine.latency import Latency
from grid.engine.server_memory import ServerMemory
from grid.ports import ServerId

LATE_FLOOR_S = 0.75
LATE_FACTOR = 4.0
"""An answer is late when it takes longer than this and this many times what was expected: time for another share."""

HOPELESS_S = 20.0
SLOWEST_RATE = 10e3
"""An answer is given up after this long, plus its octets at this rate a second."""


@define(kw_only=True, eq=False)
class ServerPace:
    """latency: what its answers cost. slow: its last answer is overdue. queued: bytes asked for that have not come."""

    latency: Latency = field(factory=Latency)
    slow: bool = False
    queued: int = 0

    def expected_s(self, size: int) -> float:
        """Seconds until `size` more bytes should have come."""
        return self.latency.time_of(self.queued + size)


@define(kw_only=True, eq=False)
class Watch:
    """One outstanding question. queued: its octets and those asked for before."""

    pace: ServerPace
    size: int
    queued: int
    sent_at: float

    @property
    def late_at(self) -> float:
        """When the answer takes longer than it should."""
        return self.sent_at + max(LATE_FLOOR_S, LATE_FACTOR * self.pace.latency.time_of(self.queued))

    @property
    def hopeless_at(self) -> float:
        """When it is given up."""
        return self.sent_at + HOPELESS_S + self.queued / SLOWEST_RATE

    def end(self, now: float | None) -> None:
        """The question is over: answered at `now`, or (None) not."""
        pace = self.pace
        pace.queued -= self.size
        if now is None:
            return
        pace.slow = False
        pace.latency.learn(self.size, self.queued, now - self.sent_at)


@define
class Paces:
    """The pace of every server, kept from one operation on a file to the next."""

    memory: ServerMemory = field(factory=ServerMemory)
    _paces: dict[ServerId, ServerPace] = field(factory=dict)

    def of(self, server_id: ServerId) -> ServerPace:
        """That server's pace."""
        pace = self._paces.get(server_id)
        if pace is None:
            pace = self._paces[server_id] = ServerPace(latency=self.memory.latency(server_id))
        return pace

    def ask(self, server_id: ServerId, size: int, now: float) -> Watch:
        """Note a question whose answer has `size` octets."""
        pace = self.of(server_id)
        pace.queued += size
        return Watch(pace=pace, size=size, queued=pace.queued, sent_at=now)
