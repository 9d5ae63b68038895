"""The plan that puts a version in its places, by test-and-set. [spec mutable 12, 15]

Synchronous and pure; drive.py runs it. A place that is no longer as it was seen was written by somebody else. What is
older than the version written over is written over too; of two writers at once the one that others may already count
on wins, and where neither's is, the one of the higher root hash: so that one version is always left to be read.
Numbers whose server fails go to another one. Success is `happy` servers with a share of their own, and k shares.

Cost: round trips: one; another for each round of places that had changed or servers that failed. Memory: the shares,
which are the caller's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from attrs import define, field, frozen

from grid.drive import Request
from grid.errors import BadWriteEnablerError, ConflictError, GridError, NotHappyError, PeerTimeoutError
from grid.mutable.goal import ABSENT, Goal, Tests, assign_homeless, hosts_of, tests_of_front
from grid.mutable.prefix import LONGEST_PREFIX, Prefix, parse_identity
from grid.mutable.requests import WriteSlot
from grid.mutable.versions import Place
from grid.placement.happiness import happiness
from grid.ports import Buffer, Event, ServerId, ShareNumber, SlotAnswer, TestWrite

MAX_ROUNDS = 4
"""Messages to a server in one publish: places change under a writer only where others write as well."""

STALL_FLOOR_S = 8.0
STALL_FACTOR = 12.0
"""Once enough servers have the version, one that takes longer than this, and so many times the slowest, is left."""

HOPELESS_S = 60.0
SLOWEST_RATE = 20e3
"""No write is waited for longer than this, plus its octets at this rate a second."""

LIVE_BYTES = 32 * 2**20
"""Octets on their way at once; more than one message only within that."""

MESSAGE_BYTES = 64 * 2**20
"""Octets in one message to a server that gets several shares; one share alone may be larger."""

Identity = tuple[int, bytes]
UNKNOWN_IDENTITY: Identity = (2**64, b"")
"""Of a share that is neither SDMF nor MDMF and was not there before: somebody's who is just writing."""

READ_BACK = [(0, LONGEST_PREFIX)]


@frozen(kw_only=True)
class WriteJob:
    """What to write. payload: (offset, octets) of one share; new_length: what the slot is cut to, None leaves it.

    base: the order of the version written over, None for a new file. settle: whether to write over what has changed,
    where that is safe. spares: servers for shares whose own fail, in the file's order.
    unasked: servers whose shares are not known. held: places that have the version already. rivals: unfinished versions newer than the base, and their shares.
    """

    prefix: Prefix
    payload: Callable[[ShareNumber], Sequence[tuple[int, Buffer]]] = field(repr=False)
    share_bytes: int
    new_length: int | None
    base: Identity | None
    happy: int
    settle: bool
    spares: Sequence[ServerId] = ()
    unasked: int = 0
    held: frozenset[Place] = frozenset()
    rivals: Mapping[Identity, frozenset[ShareNumber]] = field(factory=dict)


@frozen(kw_only=True)
class Written:
    """places: where the version is now. lost: places in the goal where it is not."""

    places: frozenset[Place]
    lost: frozenset[Place]


@define(kw_only=True, eq=False)
class _Sent:
    at: float
    tests: dict[ShareNumber, Tests]


class WritePlan:
    """Writes the job's version to every place of the goal."""

    def __init__(self, job: WriteJob, goal: Goal) -> None:
        self._job = job
        self._goal = dict(goal)
        self._due = dict(goal)
        self._waiting: deque[tuple[ServerId, dict[ShareNumber, Tests]]] = deque()
        self._sent: dict[WriteSlot, _Sent] = {}
        self._placed: set[Place] = set()
        self._foreign: dict[Identity, set[ShareNumber]] = {}
        self._broken: dict[ServerId, GridError] = {}
        self._round = 0
        self._slowest_s = 0.0
        self._done = False
        self._error: GridError | None = None
        self._withdrawn: list[Request] = []
        self._events: list[Event] = []

    @property
    def finished(self) -> bool:
        """The version is where it can be, or the write has failed."""
        return self._done

    def result(self) -> Written:
        """Where the version is; ConflictError if somebody else wrote, NotHappyError if too few servers have it."""
        if self._error is not None:
            raise self._error
        return Written(places=frozenset(self._placed), lost=frozenset(self._goal.keys() - self._placed))

    def take_events(self) -> Sequence[Event]:
        """Progress since the last call."""
        taken, self._events = self._events, []
        return taken

    def withdrawn(self) -> Sequence[Request]:
        """Writes to servers left behind."""
        taken, self._withdrawn = self._withdrawn, []
        return taken

    def wake_at(self) -> float | None:
        """When an unanswered write is to be looked at."""
        return min((self._limit(request, sent) for request, sent in self._sent.items()), default=None)

    def advance(self, now: float) -> Sequence[Request]:
        """What to write now."""
        self._leave_stalled_behind(now)
        if self._done:
            return []
        if self._foreign and not self._may_go_on():
            self._waiting.clear()
        if not self._sent and not self._waiting:
            if self._round and not self._prepare_round():
                self._conclude()
                return []
            self._begin_round()
        return self._send(now)

    def answer(self, request: Request, answer: object, now: float) -> None:
        """What a server had before, and whether it has taken the shares."""
        assert isinstance(request, WriteSlot) and isinstance(answer, SlotAnswer)
        sent = self._sent.pop(request)
        self._slowest_s = max(self._slowest_s, now - sent.at)
        if answer.passed:
            self._placed |= {(request.server_id, number) for number in request.writes}
        self._compare(request.server_id, sent, answer)
        if answer.passed:
            count = len({number for _, number in self._placed})
            total = self._job.prefix.n
            self._events.append(Event(at=now, what="progress", detail="shares", count=count, total=total))

    def fail(self, request: Request, error: GridError, now: float) -> None:
        """A server that fails is written to no more."""
        assert isinstance(request, WriteSlot)
        self._sent.pop(request)
        self._broken[request.server_id] = error

    def _begin_round(self) -> None:
        due, self._due = self._due, {}
        self._round += 1
        by_server: dict[ServerId, dict[ShareNumber, Tests]] = {}
        for (server_id, number), tests in due.items():
            by_server.setdefault(server_id, {})[number] = tests
        per_message = max(1, MESSAGE_BYTES // max(1, self._job.share_bytes))
        for server_id, shares in by_server.items():
            numbers = list(shares)
            for start in range(0, len(numbers), per_message):
                part = {number: shares[number] for number in numbers[start : start + per_message]}
                self._waiting.append((server_id, part))
        if not by_server:
            self._conclude()

    def _send(self, now: float) -> list[Request]:
        requests: list[Request] = []
        live = sum(request.size for request in self._sent)
        while self._waiting and (live < LIVE_BYTES or not self._sent):
            server_id, shares = self._waiting.popleft()
            writes = {number: self._test_write(number, tests) for number, tests in shares.items()}
            request = WriteSlot(
                server_id=server_id,
                writes=writes,
                ranges=READ_BACK,
                share_numbers=tuple(sorted(shares)),
                size=sum(len(data) for write in writes.values() for _, data in write.writes),
            )
            live += request.size
            self._sent[request] = _Sent(at=now, tests=shares)
            requests.append(request)
        return requests

    def _test_write(self, number: ShareNumber, tests: Tests) -> TestWrite:
        return TestWrite(tests=tests, writes=self._job.payload(number), new_length=self._job.new_length)

    def _compare(self, server_id: ServerId, sent: _Sent, answer: SlotAnswer) -> None:
        """Find places that had changed, and shares that were not known; they are due, or another writer's."""
        fronts = {number: bytes(pieces[0]) if pieces else b"" for number, pieces in answer.data.items()}
        for number, tests in sent.tests.items():
            if answer.passed:
                continue
            front = fronts.pop(number, b"")
            place = (server_id, number)
            if front.startswith(self._job.prefix.checkstring):
                self._placed.add(place)  # An answer was lost; the write was not.
            else:
                self._due[place] = self._met(number, front) if _differs(front, tests) else tests
        for number in [number for number in fronts if number in sent.tests]:
            del fronts[number]
        for number, front in fronts.items():
            place = (server_id, number)
            known = place in self._safe_places() or place in self._goal or number >= self._job.prefix.n
            if front and not known and not front.startswith(self._job.prefix.checkstring):
                self._due[place] = self._met(number, front)
                self._goal[place] = self._due[place]

    def _met(self, number: ShareNumber, front: bytes) -> Tests:
        """The tests for a place that has this front; if it is newer than the base, it is another writer's."""
        identity = (parse_identity(front) or UNKNOWN_IDENTITY) if front else None
        job = self._job
        if identity is not None and (job.base is None or identity > job.base or not job.settle):
            self._foreign.setdefault(identity, set()).add(number)
        return tests_of_front(front) if front else ABSENT

    def _prepare_round(self) -> bool:
        """Decide what is still to be written; whether anything is."""
        for place in [place for place in self._due if place[0] in self._broken]:
            del self._due[place]
        if self._foreign and not self._may_go_on():
            return False
        if not self._job.settle and self._due:
            return False
        usable = [server_id for server_id in self._job.spares if server_id not in self._broken]
        have = {number for _, number in [*self._safe_places(), *self._due]}
        homeless = [ShareNumber(number) for number in range(self._job.prefix.n) if number not in have]
        for place in assign_homeless(homeless, [*self._safe_places(), *self._due], usable):
            self._goal[place] = self._due[place] = ABSENT
        return bool(self._due) and self._round < MAX_ROUNDS

    def _may_go_on(self) -> bool:
        """Whether no other writer can have been told that its version is safe, and ours is the one to prevail."""
        if not self._job.settle or self._job.base is None or UNKNOWN_IDENTITY in self._foreign:
            return False
        k = self._job.prefix.k
        ours = len(hosts_of(self._safe_places()))
        unknown = {number for server_id, number in self._goal if server_id in self._broken}
        hidden = self._job.unasked * -(-self._job.prefix.n // max(1, len(self._job.spares)))
        for identity, numbers in self._foreign.items():
            if len(numbers | unknown | self._job.rivals.get(identity, frozenset())) + hidden >= k:
                return False
            if ours < k and identity > self._job.prefix.order:
                return False
        return True

    def _conclude(self) -> None:
        self._done = True
        if self._foreign and not (self._may_go_on() and not self._due):
            self._error = ConflictError("somebody else changed the file at the same time; read it again and retry")
            return
        if self._due and not self._is_safe():
            self._error = ConflictError("the file keeps changing; read it again and retry")
            return
        if not self._is_safe():
            self._error = self._unhappy()

    def _unhappy(self) -> GridError:
        """Why too few servers have the version."""
        reached = happiness(hosts_of(self._safe_places()))
        causes = list(self._broken.values())
        if causes and all(isinstance(error, BadWriteEnablerError) for error in causes) and not self._placed:
            return causes[0]
        numbers = len(hosts_of(self._safe_places()))
        reason = f" ({causes[-1]})" if causes else ""
        return NotHappyError(
            f"the new version is on {reached} servers with a share of their own and has {numbers} shares; it is safe "
            f"with {self._job.happy} such servers and {self._job.prefix.k} shares{reason}",
            causes=causes,
        )

    def _is_safe(self) -> bool:
        hosts = hosts_of(self._safe_places())
        return len(hosts) >= self._job.prefix.k and happiness(hosts) >= self._job.happy

    def _safe_places(self) -> set[Place]:
        """Where the version is."""
        return self._placed | self._job.held

    def _limit(self, request: WriteSlot, sent: _Sent) -> float:
        hopeless = HOPELESS_S + request.size / SLOWEST_RATE
        if self._is_safe():
            hopeless = min(hopeless, max(STALL_FLOOR_S, STALL_FACTOR * self._slowest_s))
        return sent.at + hopeless

    def _leave_stalled_behind(self, now: float) -> None:
        for request, sent in list(self._sent.items()):
            if now >= self._limit(request, sent):
                self._withdrawn.append(request)
                self.fail(request, PeerTimeoutError(f"server {request.server_id} did not answer in time"), now)


def _differs(front: bytes, tests: Tests) -> bool:
    """Whether a share with this front fails one of the tests of it."""
    return any(front[offset : offset + length] != specimen for offset, length, specimen in tests)
