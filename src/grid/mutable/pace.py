"""How fast each server answers, as seen by the operations on one file: when an answer is late, when it is hopeless.

Pure: time enters as `now`. Decides nothing about shares.
"""

from __future__ import annotations

from attrs import define, field

from grid.ports import ServerId

FIRST_LATENCY_S = 0.1
FIRST_OCTET_S = 1 / 10e6
"""What an answer and an octet of it are taken to cost of a server that has not answered yet."""

LATE_FLOOR_S = 0.75
LATE_FACTOR = 4.0
"""An answer is late when it takes longer than this and this many times what was expected: time for another share."""

HOPELESS_S = 20.0
SLOWEST_RATE = 10e3
"""An answer is given up after this long, plus its octets at this rate a second."""

SMALL_ANSWER = 32768
"""Octets below which an answer's time tells of the latency, above which of the rate."""


@define(kw_only=True, eq=False)
class ServerPace:
    """latency_s, octet_s: seconds for an answer, and for each octet of it. slow: its last answer is overdue."""

    latency_s: float = FIRST_LATENCY_S
    octet_s: float = FIRST_OCTET_S
    known: bool = False
    slow: bool = False
    queued: int = 0

    def expected_s(self, size: int) -> float:
        """Seconds until `size` more octets should have come."""
        return self.latency_s + (self.queued + size) * self.octet_s


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
        pace = self.pace
        return self.sent_at + max(LATE_FLOOR_S, LATE_FACTOR * (pace.latency_s + self.queued * pace.octet_s))

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
        elapsed = max(now - self.sent_at, 1e-4)
        weight = 0.2 if pace.known else 1.0
        if self.size < SMALL_ANSWER:
            pace.latency_s += weight * (elapsed - pace.latency_s)
        else:
            pace.octet_s += weight * (max(elapsed - pace.latency_s, elapsed / 4) / self.queued - pace.octet_s)
        pace.known = True


@define
class Paces:
    """The pace of every server, kept from one operation to the next."""

    _paces: dict[ServerId, ServerPace] = field(factory=dict)

    def of(self, server_id: ServerId) -> ServerPace:
        """That server's pace."""
        return self._paces.setdefault(server_id, ServerPace())

    def ask(self, server_id: ServerId, size: int, now: float) -> Watch:
        """Note a question whose answer has `size` octets."""
        pace = self.of(server_id)
        pace.queued += size
        return Watch(pace=pace, size=size, queued=pace.queued, sent_at=now)
