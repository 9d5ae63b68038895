"""The messages of one publish: which wait, which are in flight, and which of those are late. Pure; part of the write plan.

It decides only what goes into one message, and how many bytes are in flight at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Set

from grid.engine.requests import Request
from grid.mutable.share.prefix import LONGEST_PREFIX
from grid.mutable.share.requests import WriteSlot
from grid.mutable.share.versions import ShareLocation
from grid.mutable.write.goal import ABSENT, Goal, Guards, Tests, tests_of_front, tests_of_version
from grid.mutable.write.write_job import WriteJob
from grid.ports import ServerId, ShareNumber, SlotAnswer, TestWrite
from grid.values import define, field

LIVE_BYTES = 32 * 2**20
"""Bytes in flight at once. Several messages are in flight only within this limit."""

MESSAGE_BYTES = 64 * 2**20
"""Bytes per message to a server that gets several shares. A single share may be larger."""

READ_BACK = [(0, LONGEST_PREFIX)]


@define(kw_only=True, eq=False)
class Sent:
    """A message in flight. tests: of each share in it. guards: of the others.

    late: others need not wait for it. overdue: its answer can no longer reveal a danger. is_bar: it stores nothing; see LostLocations.
    """

    at: float
    tests: Mapping[ShareNumber, Tests]
    guards: Guards = field(factory=dict)
    late: bool = False
    overdue: bool = False
    is_bar: bool = False


class WriteQueue:
    """Turns locations into messages, and keeps track of them."""

    def __init__(self, job: WriteJob) -> None:
        self._job = job
        self._waiting: deque[tuple[ServerId, dict[ShareNumber, Tests]]] = deque()
        self._bars: dict[ShareLocation, TestWrite] = {}
        self._guards: dict[ServerId, Guards] = dict(job.guards)
        self.sent: dict[WriteSlot, Sent] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether anything is still unsent."""
        return bool(self._waiting or self._bars)

    @property
    def is_busy(self) -> bool:
        """Whether anything is unsent, or in flight and not late."""
        return self.is_waiting or any(not sent.late for sent in self.sent.values())

    def late(self) -> Iterator[WriteSlot]:
        """The messages that are late."""
        return (request for request, sent in self.sent.items() if sent.late)

    def add(self, due: Goal) -> None:
        """Queue shares for these locations."""
        by_server: dict[ServerId, dict[ShareNumber, Tests]] = {}
        for (server_id, number), tests in due.items():
            by_server.setdefault(server_id, {})[number] = tests
        per_message = max(1, MESSAGE_BYTES // max(1, self._job.contents.share_bytes))
        for server_id, shares in by_server.items():
            if server_id in self._guards:  # A claim has changed what the map shows of these locations.
                self._guards[server_id] = {**self._guards[server_id], **shares}
            numbers = list(shares)
            for start in range(0, len(numbers), per_message):
                part = {number: shares[number] for number in numbers[start : start + per_message]}
                self._waiting.append((server_id, part))

    def add_bars(self, bars: Mapping[ShareLocation, TestWrite]) -> None:
        """Queue writes that keep other writers from these locations."""
        self._bars |= bars

    def learn(self, server_id: ServerId, sent: Sent, answer: SlotAnswer) -> None:
        """Guard later messages to this server with what its answer shows of its shares, and with what it took."""
        if server_id not in self._guards:
            return
        fronts = {number: bytes(pieces[0]) if pieces else b"" for number, pieces in answer.data.items()}
        guards: dict[ShareNumber, Tests] = {
            number: tests_of_front(fronts.get(number, b"")) for number in map(ShareNumber, range(self._job.prefix.n))
        }
        if answer.passed:
            for number in sent.tests:
                removed = (server_id, number) in self._job.removes
                guards[number] = ABSENT if removed else tests_of_version(self._job.prefix)
        self._guards[server_id] = guards

    def clear(self) -> None:
        """Drop everything unsent."""
        self._waiting.clear()

    def send(self, broken: Set[ServerId], now: float) -> list[Request]:
        """The messages to send now, none of them to broken servers."""
        requests: list[Request] = list(self._send_bars(now))
        live = sum(request.size for request, sent in self.sent.items() if not sent.late)
        while self._waiting and (live < LIVE_BYTES or not live):
            server_id, shares = self._waiting.popleft()
            if server_id in broken:
                continue
            guards = {n: tests for n, tests in self._guards.get(server_id, {}).items() if n not in shares}
            writes = {number: self._write(server_id, number, tests) for number, tests in shares.items()}
            request = self._message(server_id, writes, guards)
            live += request.size
            self.sent[request] = Sent(at=now, tests=shares, guards=guards)
            requests.append(request)
        return requests

    def _send_bars(self, now: float) -> Iterator[WriteSlot]:
        by_server: dict[ServerId, dict[ShareNumber, TestWrite]] = {}
        for (server_id, number), bar in self._bars.items():
            by_server.setdefault(server_id, {})[number] = bar
        self._bars = {}
        for server_id, writes in by_server.items():
            request = self._message(server_id, writes, {})
            self.sent[request] = Sent(at=now, tests={}, is_bar=True)
            yield request

    def _write(self, server_id: ServerId, number: ShareNumber, tests: Tests) -> TestWrite:
        if (server_id, number) in self._job.removes:
            return TestWrite(tests=tests, writes=[], new_length=0)
        contents = self._job.contents
        return TestWrite(tests=tests, writes=contents.payload(number), new_length=contents.new_length)

    def _message(self, server_id: ServerId, writes: Mapping[ShareNumber, TestWrite], guards: Guards) -> WriteSlot:
        return WriteSlot(
            server_id=server_id,
            writes={**writes, **{number: _tested_only(tests) for number, tests in guards.items()}},
            ranges=READ_BACK,
            share_numbers=tuple(sorted(writes)),
            size=sum(len(data) for write in writes.values() for _, data in write.writes),
        )


def _tested_only(tests: Tests) -> TestWrite:
    """A test that leaves the share as it is. Without a length of 0, a server would create a missing share."""
    return TestWrite(tests=tests, writes=[], new_length=0 if tests == ABSENT else None)
