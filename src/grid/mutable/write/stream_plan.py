"""The plan that writes the blocks of a large version to its locations, piece by piece. [spec mutable 4, 5]

Synchronous and pure; drive.py runs it. It writes nothing that readers look at. What it leaves behind becomes a version
once its headers are written. The first piece claims a location with a token, and every later piece and the header
require that token, so two writers never mix their blocks. See docs/decisions/0030-large-mutable-files.md.

Cost: round trips: per server one message per batch, IN_FLIGHT at a time. Memory: LIVE_BYTES of shares. CPU: one pool
call per batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import partial

from grid.engine.latency import are_distant
from grid.engine.lateness import WriteLateness
from grid.engine.plan import PlanBase
from grid.engine.requests import ReadSource, Request
from grid.engine.server_memory import ServerMemory
from grid.engine.write_batches import WriteBatch, WriteBatches, bytes_of_a_share
from grid.errors import ConflictError, FormatError, GridError, PeerTimeoutError
from grid.mutable.share.blocks import EncodedRun, SourceRun, VersionHashes, split_salted
from grid.mutable.share.geometry import HASH_SIZE, SALT_SIZE, Geometry
from grid.mutable.share.requests import EncodeRun, WriteSlot
from grid.mutable.share.versions import ShareLocation
from grid.mutable.write.goal import ABSENT, Goal, Tests, hosts_of
from grid.mutable.write.placed_shares import AS_IT_WAS, are_enough, too_few
from grid.placement.happiness import happiness
from grid.ports import Buffer, Event, ServerId, ShareNumber, SlotAnswer, TestWrite
from grid.values import define, field, frozen

WRITE_BYTES = 32 * 2**20
"""Bytes of all shares in a batch: more than for an immutable file, because each write to a slot costs a server more than its bytes."""

LIVE_BYTES = 2 * WRITE_BYTES
"""Bytes of shares that are read and encoded, but that some server has not taken: one batch on its way, and the next one."""

DISTANT_BYTES = 6 * 2**20
DISTANT_IN_FLIGHT = 3
"""The same for distant servers, and their messages in flight: each goes over a connection of its own, so that one that is slow holds up
less. Together they fill 100 Mbit/s at 100 ms, and what routers keep for such a line has room for them."""

FIRST_PART = 6
"""The first batch is this many times smaller than the others: it claims the locations while the next one is encoded."""

IN_FLIGHT = 2
"""Messages in flight to a server that has confirmed our claim: the next one arrives while it waits for its disk."""

STREAM_FLOOR_S = 0.5
"""A server that takes longer than this, and several times as long as the others, is left behind if the others are enough."""

UNFINISHED = b"\xff"
"""The first byte of a share whose header is not written yet: a version that no reader knows."""

TOKEN_SIZE = 41
"""Bytes of a token: the size of an MDMF checkstring."""


class ClaimKind(Enum):
    """FRONT: the token is where the header will be, so the location has no readable version meanwhile.
    BEHIND: it is after the old version and before the new blocks. NONE: the given tests hold all the time.
    """

    FRONT = "front"
    BEHIND = "behind"
    NONE = "none"


@frozen(kw_only=True)
class StreamJob:
    """What to encode, and how to claim its locations.

    data_offset: where blocks start in a share. salts: 16 bytes per segment, and the source is plaintext; or None, and the
    source has each segment's salt and ciphertext. token: TOKEN_SIZE bytes, the first of them UNFINISHED.
    claim_offset: where the token is written (ignored for NONE). needed, happy: distinct shares, and servers with one of
    their own, below which the stream fails.
    """

    geometry: Geometry
    data_offset: int
    salts: bytes | None = field(repr=False)
    read_key: bytes | None = field(repr=False)
    claim: ClaimKind
    claim_offset: int
    token: bytes
    needed: int
    happy: int

    def tests_after_claim(self, before: Tests) -> Tests:
        """What holds at a location once its first piece is written."""
        if self.claim is ClaimKind.NONE:
            return before
        token = (self.claim_offset, len(self.token), self.token)
        if self.claim is ClaimKind.FRONT:
            return (token,)
        # A share that did not exist does now, and starts with the zeros with which a server fills holes.
        front = ((0, TOKEN_SIZE, bytes(TOKEN_SIZE)),) if before == ABSENT else before
        return (*front, token)

    def bar(self, before: Tests, token: bytes) -> TestWrite | None:
        """A write that stops another writer whose token is there, and damages nothing else; None without tokens."""
        match self.claim:
            case ClaimKind.NONE:
                return None
            case ClaimKind.FRONT:
                return TestWrite(tests=((0, 1, UNFINISHED),), writes=[(0, token)])
            case ClaimKind.BEHIND:
                front = ((0, TOKEN_SIZE, bytes(TOKEN_SIZE)),) if before == ABSENT else before
                return TestWrite(tests=front, writes=[(self.claim_offset, token)])


@frozen(kw_only=True)
class Streamed:
    """hashes: of all shares. goal: the locations that have all blocks but the last, with the tests that hold there until then.

    last_offset, last: the missing bytes of each share, and their offset; they are written with its header.
    denied: locations that have changed, as their servers say, with the first tests.
    """

    hashes: VersionHashes
    goal: Goal
    denied: Goal
    last_offset: int
    last: Mapping[ShareNumber, Buffer] = field(repr=False)


@define(kw_only=True, eq=False)
class _Server:
    shares: dict[ShareNumber, Tests]
    claimed: bool = False
    queue: deque[WriteBatch[EncodedRun]] = field(factory=deque)
    writing: dict[WriteSlot, tuple[WriteBatch[EncodedRun], float]] = field(factory=dict)


class _Servers(dict[ServerId, _Server]):
    """The servers that have not failed, and whether they are enough."""

    def __init__(self, goal: Goal, needed: int, happy: int) -> None:
        super().__init__()
        for (server_id, number), tests in goal.items():
            self.setdefault(server_id, _Server(shares={})).shares[number] = tests
        self._needed = needed
        self._happy = happy
        self._dispensable: dict[ServerId, bool] = {}

    def lose(self, server_id: ServerId) -> _Server:
        """Continue without a server."""
        self._dispensable.clear()
        return self.pop(server_id)

    def locations(self, without: ServerId | None = None) -> list[ShareLocation]:
        """The locations of all shares, without the given server."""
        return [(sid, number) for sid, server in self.items() if sid != without for number in server.shares]

    def is_dispensable(self, server_id: ServerId) -> bool:
        """Whether the other servers are enough; computed again only when the servers change."""
        if server_id not in self._dispensable:
            self._dispensable[server_id] = are_enough(self.locations(without=server_id), self._needed, self._happy)
        return self._dispensable[server_id]


class StreamPlan(PlanBase):
    """Writes the blocks of the job to all locations of the goal, or to as many as needed.

    The blocks of the last batch are encoded but left to the caller, who writes them with the header: this saves a message and its syncs.
    """

    def __init__(self, job: StreamJob, goal: Goal, memory: ServerMemory) -> None:
        super().__init__()
        self._job = job
        self._lateness = WriteLateness(memory=memory, floor_s=STREAM_FLOOR_S)
        self._denied: Goal = {}
        self._geometry = geometry = job.geometry
        self._hashes = VersionHashes(geometry)
        self._servers = _Servers(goal, job.needed, job.happy)
        self._wanted = frozenset(number for _, number in goal)
        distant = are_distant(min((memory.latency(server_id).quickest_s for server_id in self._servers), default=0.0))
        self._in_flight = DISTANT_IN_FLIGHT if distant else IN_FLIGHT
        share_counts = (len(server.shares) for server in self._servers.values())
        size = bytes_of_a_share(DISTANT_BYTES if distant else WRITE_BYTES, geometry.n, share_counts)
        first = min(WRITE_BYTES // FIRST_PART // geometry.n, size)
        cut = partial(_cut, job, max(1, first // geometry.stride), max(1, size // geometry.stride))
        self._batches: WriteBatches[EncodedRun] = WriteBatches(geometry.segment_count, LIVE_BYTES, cut)
        self._failures: dict[ServerId, GridError] = {}

    def _is_done(self) -> bool:
        waiting = (batch for batch in self._batches if batch.encoded is None or not self._batches.is_last(batch))
        return self._batches.all_read and not any(waiting)

    def result(self) -> Streamed:
        """What to sign now; ConflictError if another client wrote, NotHappyError if too few servers are left."""
        self._raise_error()
        goal = {
            (server_id, number): self._job.tests_after_claim(tests) if server.claimed else tests
            for server_id, server in self._servers.items()
            for number, tests in server.shares.items()
        }
        last = self._batches.last
        return Streamed(
            hashes=self._hashes,
            goal=goal,
            denied=self._denied,
            last_offset=0 if last is None else self._offset_of(last),
            last={} if last is None or last.encoded is None else last.encoded.data,
        )

    def wake_at(self) -> float | None:
        """When an unanswered write counts as a stall."""
        limits = (self._limit(w, at) for s in self._servers.values() for w, (_, at) in s.writing.items())
        return min(limits, default=None)

    def advance(self, now: float) -> Sequence[Request]:
        """The requests that read, encode and write now."""
        if self.finished:
            return []
        self._leave_stalled_behind(now)
        self._retire(now)
        requests = [*self._take_outbox(), *self._batches.read_on()]
        for server_id, server in self._servers.items():
            requests += self._send(server_id, server, now)
        return [] if self._error is not None else requests

    def answer(self, request: Request, answer: object, now: float) -> None:
        """Take bytes of the source, encoded runs, and servers' confirmations."""
        match request:
            case ReadSource():
                assert isinstance(answer, bytes | bytearray | memoryview)
                self._encode(self._batches.read(), answer)
            case EncodeRun():
                assert isinstance(answer, EncodedRun)
                self._batches.encoded(request, answer).absorbed = True
                self._hashes.absorb(answer)
            case WriteSlot():
                assert isinstance(answer, SlotAnswer)
                self._written(request, answer, now)
            case _:
                pass

    def fail(self, request: Request, error: GridError, now: float) -> None:
        """Leave a failed server behind. A failure of the source or of a pool job ends the plan."""
        if isinstance(request, WriteSlot):
            self._lose(request.server_id, error)
        else:
            self._stop(error)

    def _encode(self, batch: WriteBatch[EncodedRun], text: Buffer) -> None:
        """Encode the batch whose text has come."""
        job, salts = self._job, self._job.salts
        try:
            if salts is None:
                kept, text = split_salted(self._geometry, batch.first, batch.count, text)
            else:
                stop = batch.first + batch.count
                kept = [salts[SALT_SIZE * s : SALT_SIZE * (s + 1)] for s in range(batch.first, stop)]
        except GridError as error:
            self._stop(error)
            return
        run = SourceRun(
            geometry=self._geometry,
            first_segment=batch.first,
            segment_count=batch.count,
            text=text,
            salts=kept,
            read_key=job.read_key if salts is not None else None,
            wanted=self._wanted,
        )
        self._outbox.append(self._batches.encoding(batch, EncodeRun(run=run, size=len(text))))

    def _retire(self, now: float) -> None:
        """Queue what is encoded, in order, and drop the batches that all servers have taken."""
        for batch in self._batches.to_send(self._servers):
            for server in self._servers.values():
                server.queue.append(batch)
        for batch in self._batches.retire():
            done = min(self._geometry.size, (batch.first + batch.count) * self._geometry.segment_size)
            self._events.append(Event(at=now, what="progress", count=done, total=self._geometry.size))

    def _offset_of(self, batch: WriteBatch[EncodedRun]) -> int:
        return self._job.data_offset + self._geometry.run_offset(batch.first)

    def _send(self, server_id: ServerId, server: _Server, now: float) -> list[Request]:
        requests: list[Request] = []
        # Until the token is there, a second piece could overtake the first and not find it.
        most = self._in_flight if server.claimed or self._job.claim is ClaimKind.NONE else 1
        while server.queue and len(server.writing) < most:
            batch = server.queue.popleft()
            assert batch.encoded is not None
            offset = self._offset_of(batch)
            data = batch.encoded.data
            writes = {n: self._piece(server, tests, offset, data[n]) for n, tests in server.shares.items()}
            request = WriteSlot(
                server_id=server_id,
                writes=writes,
                ranges=(),
                size=sum(len(data[number]) for number in writes),
                share_numbers=tuple(sorted(writes)),
            )
            server.writing[request] = batch, now
            requests.append(request)
        return requests

    def _piece(self, server: _Server, tests: Tests, offset: int, data: Buffer) -> TestWrite:
        if server.claimed or self._job.claim is ClaimKind.NONE:
            return TestWrite(tests=self._job.tests_after_claim(tests), writes=[(offset, data)])
        return TestWrite(tests=tests, writes=[(self._job.claim_offset, self._job.token), (offset, data)])

    def _written(self, request: WriteSlot, answer: SlotAnswer, now: float) -> None:
        server = self._servers[request.server_id]
        batch, at = server.writing.pop(request)
        self._lateness.learn(request.size, now - at)
        if not answer.passed:
            # So far only the server claims that. The caller, who writes the headers, has it proven.
            self._denied |= {(request.server_id, number): tests for number, tests in server.shares.items()}
            self._lose(
                request.server_id,
                ConflictError("somebody else changed the file at the same time; read it again and retry"),
            )
            return
        server.claimed = True
        batch.waiting_for.discard(request.server_id)

    def _lose(self, server_id: ServerId, error: GridError) -> None:
        server = self._servers.lose(server_id)
        self._failures[server_id] = error
        self._withdrawn.extend(server.writing)
        self._batches.lose(server_id)
        locations, job = self._servers.locations(), self._job
        if not are_enough(locations, job.needed, job.happy):
            hosts = hosts_of(locations)
            conflict = next((cause for cause in self._failures.values() if isinstance(cause, ConflictError)), None)
            counts = happiness(hosts), job.happy, len(hosts), job.needed
            # A conflict is retried, so it takes precedence over earlier failures.
            self._error = conflict or too_few(
                *counts, verb="took the new version", failures=self._failures, state=AS_IT_WAS
            )

    def _limit(self, request: WriteSlot, at: float) -> float:
        """When to give up on a write: early, if the other servers are faster and are enough."""
        hopeless_at = self._lateness.hopeless_at(request.size, at)
        if not self._lateness.heard or not self._servers.is_dispensable(request.server_id):
            return hopeless_at
        return min(hopeless_at, self._lateness.late_at(request.server_id, WriteSlot.__name__, request.size, at))

    def _leave_stalled_behind(self, now: float) -> None:
        for server_id, server in list(self._servers.items()):
            if any(now >= self._limit(request, at) for request, (_, at) in server.writing.items()):
                self._lose(server_id, PeerTimeoutError(f"server {server_id} did not answer in time"))


def _cut(job: StreamJob, first_count: int, most: int, first: int) -> WriteBatch[EncodedRun]:
    """The batch that begins with segment `first`. If the job has no salts, the source contains them."""
    geometry = job.geometry
    count = min(most if first else first_count, geometry.segment_count - first)
    share_bytes, text_bytes = geometry.run_sizes(first, count)
    offset, salt_size = first * geometry.segment_size, SALT_SIZE if job.salts is None else 0
    return WriteBatch(
        first=first,
        count=count,
        source_offset=offset + first * salt_size,
        source_bytes=text_bytes + count * salt_size,
        share_bytes=share_bytes * geometry.n,
    )


def make_token(raw: bytes) -> bytes:
    """Make a token of TOKEN_SIZE bytes from 32 unpredictable ones; FormatError if there are fewer."""
    if len(raw) < HASH_SIZE:
        raise FormatError("a token takes 32 bytes")
    return (UNFINISHED + raw).ljust(TOKEN_SIZE, b"\0")
