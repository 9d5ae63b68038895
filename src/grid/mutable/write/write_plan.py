"""The plan that writes a version to its locations by test-and-set. [spec mutable 12, 15]

Synchronous and pure; drive.py runs it. If a location has changed, either another client has written it or
its server lies. So the server must show the signature of what is there before anything follows from it. One that cannot has failed,
like one that refused. Of two concurrent writers, the one that others may already count on wins; if there is none, the
higher root hash wins. So one version is always left to read. Shares of servers that fail or stay silent
go to other servers. Success means `happy` servers with a share of their own, and k shares; after that, no server is waited for longer than
engine/lateness.py says.

Cost: round trips: one; one more for each round of changed locations or failed servers, and two to demand proofs.
Memory: the shares, which are the caller's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from grid.engine.lateness import OTHER_WRITER_PATIENCE_S, WriteLateness
from grid.engine.plan import PlanBase, timed_out
from grid.engine.requests import Request
from grid.engine.server_memory import ServerMemory
from grid.errors import BadWriteEnablerError, ConflictError, GridError, IntegrityError, PeerTimeoutError
from grid.mutable.share.keys import FileKeys
from grid.mutable.share.prefix import parse_identity
from grid.mutable.share.requests import ReadSlot, WriteSlot
from grid.mutable.share.versions import ShareLocation
from grid.mutable.write.goal import ABSENT, Goal, Tests, tests_of_front
from grid.mutable.write.other_writers import OtherWriters
from grid.mutable.write.placed_shares import PlacedShares
from grid.mutable.write.proof_requests import ProofRequests, ServerProof
from grid.mutable.write.write_job import WriteJob, Written
from grid.mutable.write.write_queue import Sent, WriteQueue
from grid.ports import Event, ServerId, ShareNumber, SlotAnswer

MAX_DENIALS = 3
"""How often a server may say in one publish that a location has changed. Honest servers do so only when others write as well."""

WRITE_KIND = WriteSlot.__name__


class WritePlan(PlanBase):
    """Writes the job's version to every location of the goal."""

    def __init__(self, job: WriteJob, goal: Goal, keys: FileKeys, memory: ServerMemory) -> None:
        super().__init__()
        self._job = job
        self._shares = PlacedShares(job, goal)
        self._queue = WriteQueue(job)
        self._queue.add_bars({location: bar for location, bar in job.lost.bars.items() if location not in goal})
        self._shown: set[ShareLocation] = set()
        self._proof_requests = ProofRequests(keys)
        for server_id, number in sorted(job.lost.suspects):
            self._proof_requests.demand(server_id, [number])
        self._others = OtherWriters(prefix=job.prefix, base=job.base, known=job.unfinished)
        self._denials: Counter[ServerId] = Counter()
        self._broken: dict[ServerId, GridError] = {}
        self._lateness = WriteLateness(memory=memory, floor_s=job.late_floor_s)
        self._begun = False
        self._done = False

    def _is_done(self) -> bool:
        return self._done

    def result(self) -> Written:
        """Where the version is; ConflictError if another client wrote, NotHappyError if too few servers have it.

        MayHoldError, which is a NotHappyError, if these are enough to read it.
        """
        self._raise_error()
        return self._shares.written()

    def wake_at(self) -> float | None:
        """When to look at the next unanswered request."""
        limits = [self._hopeless_at(request, sent) for request, sent in self._queue.sent.items()]
        limits += [self._late_at(request, sent) for request, sent in self._queue.sent.items() if not sent.late]
        limits += self._other_writer_limits()
        claims = map(self._proof_limit, self._proof_requests.servers)
        return min([*limits, *(limit for limit in claims if limit is not None)], default=None)

    def advance(self, now: float) -> Sequence[Request]:
        """The writes and questions to send now."""
        self._look_at_the_clock(now)
        if self._others.seen and not self._may_go_on():
            self._queue.clear()
        if not self._done and not self._is_busy():
            self._next_round()
        requests = (
            [] if self._done else [*self._proof_requests.requests(now), *self._queue.send(self._broken.keys(), now)]
        )
        requests += self._take_outbox()
        return requests

    def answer(self, request: Request, answer: object, now: float) -> None:
        """Take what a server had before and whether it took the shares, or take its proof."""
        match request:
            case ReadSlot():
                assert isinstance(answer, Mapping)
                proof = self._proof_requests.answer(request, answer)
                if proof is not None:
                    self._weigh(proof, now)
            case WriteSlot():
                assert isinstance(answer, SlotAnswer)
                sent = self._queue.sent.pop(request)
                self._lateness.learn(request.size, now - sent.at)
                if request.server_id not in self._broken:
                    self._written(request, sent, answer, now)
            case _:
                pass

    def fail(self, request: Request, error: GridError, now: float) -> None:
        """Send nothing more to a failed server."""
        if isinstance(request, WriteSlot):
            self._queue.sent.pop(request)
            self._broken.setdefault(request.server_id, error)
        elif isinstance(request, ReadSlot):
            self._cannot_prove(request.server_id, {}, error, now)

    def _is_busy(self) -> bool:
        """Whether outstanding answers must come before the next decision."""
        return self._queue.is_busy or self._proof_requests.pending

    def _next_round(self) -> None:
        """Send what is due. If nothing is, conclude, unless late servers are needed."""
        if self._begun:
            late = [
                (request.server_id, ShareNumber(number))
                for request in self._queue.late()
                for number in request.share_numbers
            ]
            self._shares.find_homes(self._broken.keys(), {request.server_id for request in self._queue.sent}, late)
        if self._begun and not self._shares.due and self._queue.sent and not self._is_decided():
            return
        if not self._begun or (self._shares.due and not self._is_lost()):
            due, self._shares.due, self._begun = self._shares.due, {}, True
            self._queue.add(due)
        if not self._queue.is_waiting:
            self._conclude()

    def _is_decided(self) -> bool:
        """Whether late answers cannot matter any more, or have had enough time."""
        if self._is_lost():
            return True
        # Without a majority, the late servers may all have a rival, whose writer goes past those that have this version.
        is_safe = self._shares.are_enough() and self._shares.has_majority
        return is_safe and not self._other_writer_limits()

    def _other_writer_limits(self) -> list[float]:
        """How long to wait for late servers that may together hold k shares of a version nobody has shown yet."""
        late = [
            request for request in self._queue.late() if not self._lateness.is_doubtful(request.server_id, WRITE_KIND)
        ]
        numbers = {number for request in late for number in request.share_numbers}
        if self._job.base is None or not self._job.settle or len(numbers) + self._job.hidden < self._job.prefix.k:
            return []
        waiting = (self._queue.sent[request] for request in late)
        return [sent.at + OTHER_WRITER_PATIENCE_S for sent in waiting if not sent.overdue]

    def _is_lost(self) -> bool:
        """Whether this version must give way."""
        return self._others.seen and not self._may_go_on()

    def _written(self, request: WriteSlot, sent: Sent, answer: SlotAnswer, now: float) -> None:
        """Take in a server's confirmation, or what it says is in the way."""
        if sent.is_bar:
            self._barred(request, answer, now)
            return
        if answer.passed:
            self._shares.taken({(request.server_id, number) for number in sent.tests})
        else:
            self._denials[request.server_id] += 1
        self._compare(request.server_id, sent, answer, now)
        self._queue.learn(request.server_id, sent, answer)
        if answer.passed:
            count = len({number for _, number in self._shares.placed})
            total = self._job.prefix.n
            self._events.append(Event(at=now, what="progress", detail="shares", count=count, total=total))
        elif self._denials[request.server_id] > MAX_DENIALS:
            self._distrust(
                request.server_id,
                request.share_numbers[0],
                "the server reports a change of the share at every write",
                now,
            )

    def _compare(self, server_id: ServerId, sent: Sent, answer: SlotAnswer, now: float) -> None:
        """Find changed locations and unknown shares. Make them due, ask for their proofs, or give them up."""
        fronts = {number: bytes(pieces[0]) if pieces else b"" for number, pieces in answer.data.items()}
        guarded: set[ShareNumber] = set()
        if not answer.passed:  # Denials are counted, so that a server cannot prolong this without end.
            guarded = {number for number, tests in sent.guards.items() if _differs(fronts.get(number, b""), tests)}
        changed = bool(guarded)
        for number, tests in sent.tests.items():
            front = fronts.pop(number, b"")
            if answer.passed:
                continue
            if front.startswith(self._job.prefix.checkstring):
                self._shares.placed.add((server_id, number))  # The answer was lost; the write was not.
                changed = True
            elif not front and (server_id, number) in self._job.removes:
                self._shares.removed.add((server_id, number))
                changed = True
            elif _differs(front, tests):
                changed = True
                self._others.appeared(parse_identity(front), parse_identity(tests[0][2]))
                self._in_the_way(server_id, number, front, now)
            else:
                self._shares.due[server_id, number] = tests
        if not answer.passed and not changed:
            self._distrust(server_id, min(sent.tests), "the server refuses a write whose tests hold", now)
            return
        for number, front in fronts.items():
            location = (server_id, number)
            known = location in self._shares.safe or location in self._shares.goal or number >= self._job.prefix.n
            # A share with no version is left to the next map; nothing depends on it.
            if (
                (number in guarded or not known)
                and parse_identity(front)
                and not front.startswith(self._job.prefix.checkstring)
            ):
                if number in guarded:
                    self._others.appeared(parse_identity(front), parse_identity(sent.guards[number][0][2]))
                self._in_the_way(server_id, number, front, now)

    def _barred(self, request: WriteSlot, answer: SlotAnswer, now: float) -> None:
        """Another writer can no longer finish there, or it has finished already, or the server lies."""
        fronts = {number: bytes(pieces[0]) for number, pieces in answer.data.items() if pieces and pieces[0]}
        newer = [number for number, front in fronts.items() if self._others.is_newer(parse_identity(front))]
        if not answer.passed and newer:
            self._shown |= {(request.server_id, number) for number in newer}
            self._proof_requests.demand(request.server_id, newer)
        elif not answer.passed:
            self._distrust(
                request.server_id, request.share_numbers[0], "the server refuses a write whose tests hold", now
            )

    def _in_the_way(self, server_id: ServerId, number: ShareNumber, front: bytes, now: float) -> None:
        """Handle the front found at a location: an older version is overwritten, a newer one or none must be proven."""
        location = (server_id, number)
        if front and self._others.is_newer(parse_identity(front)):
            self._shown.add(location)
            self._proof_requests.demand(server_id, [number])
        elif self._job.spared.front and front.startswith(self._job.spared.front) and location not in self._shares.goal:
            return  # Where the old version has come late, this one replaces it: the spared shares are elsewhere.
        elif self._job.settle:
            self._shares.require(location, tests_of_front(front) if front else ABSENT)
        elif location in self._shares.goal:
            self._shares.yielded.add(location)
            if not front or self._others.is_older(parse_identity(front)):
                self._reject(server_id, number, "the share differs from what the server showed before", now)
            if location in self._job.lost.bars:
                self._queue.add_bars({location: self._job.lost.bars[location]})

    def _weigh(self, proof: ServerProof, now: float) -> None:
        """Take in proven versions. A server that cannot prove what it has shown has failed."""
        server_id = proof.server_id
        unproven = dict(proof.unproven)
        for number, (order, front) in proof.fronts.items():
            if not self._others.is_newer(order):
                if (server_id, number) in self._shown:
                    unproven[number] = "the share differs from what the server showed before"
            elif self._job.settle and server_id not in self._broken:
                self._shares.require((server_id, number), tests_of_front(front))
        self._others.note(server_id, proof.versions)
        if unproven:
            self._cannot_prove(server_id, unproven, None, now)

    def _cannot_prove(
        self, server_id: ServerId, unproven: Mapping[ShareNumber, str], error: GridError | None, now: float
    ) -> None:
        """A server has shown something in the way and has not proven it."""
        self._withdrawn += self._proof_requests.drop(server_id)
        for number, reason in sorted(unproven.items())[:1]:
            self._distrust(server_id, number, reason, now)
        if error is not None:
            self._give_up(server_id, error)

    def _distrust(self, server_id: ServerId, number: int, reason: str, now: float) -> None:
        """Treat the server as one that refuses, and report the share."""
        self._reject(server_id, number, reason, now)
        self._give_up(
            server_id,
            IntegrityError(f"server {server_id} shows a share that it cannot prove, and refuses another one"),
        )

    def _give_up(self, server_id: ServerId, error: GridError) -> None:
        """Ignore everything that the server has said about this write."""
        self._broken.setdefault(server_id, error)
        self._shares.forget(server_id)

    def _may_go_on(self) -> bool:
        """Whether no other writer can count its version as safe, and ours should win."""
        locations = self._shares.goal.keys() | self._job.lost.bars.keys() | self._job.lost.suspects
        away = {number for server_id, number in locations if server_id in self._broken}
        away |= {ShareNumber(number) for request in self._queue.late() for number in request.share_numbers}
        return self._others.may_go_on(self._shares.numbers, away, self._job.hidden)

    def _conclude(self) -> None:
        self._done = True
        self._withdrawn += self._queue.sent
        if self._is_lost():
            self._stop(
                ConflictError(
                    "somebody else changed the file at the same time; read it again and retry",
                    shown={str(server): version for server, version in self._others.shown.items()},
                    ours=self._job.prefix.order,
                )
            )
        elif not self._shares.are_enough():
            self._stop(self._explain())

    def _explain(self) -> GridError:
        """Why too few servers have the version."""
        causes = list(self._broken.values())
        if causes and all(isinstance(error, BadWriteEnablerError) for error in causes) and not self._shares.placed:
            return causes[0]
        if self._shares.are_enough(self._shares.yielded):
            return ConflictError("the file keeps changing; read it again and retry")
        return self._shares.unsettled(self._broken)

    def _late_at(self, request: WriteSlot, sent: Sent) -> float:
        late_at = self._lateness.late_at(request.server_id, WRITE_KIND, request.size, sent.at)
        # Another writer is active, and what the silent servers hold decides which version gives way.
        return late_at + (late_at - sent.at) * 4 if self._others.seen else late_at

    def _hopeless_at(self, request: WriteSlot, sent: Sent) -> float:
        return self._lateness.hopeless_at(request.size, sent.at)

    def _proof_limit(self, server_id: ServerId) -> float | None:
        # Without a majority, this version may be the one that must give way, and only the proof shows it.
        is_needed = not self._shares.has_majority
        return self._proof_requests.limit(server_id, self._lateness.slowest_s, is_needed=is_needed)

    def _look_at_the_clock(self, now: float) -> None:
        """Mark late servers, and give up on hopeless ones."""
        for request, sent in list(self._queue.sent.items()):
            sent.late = sent.late or now >= self._late_at(request, sent)
            sent.overdue = sent.overdue or now >= sent.at + OTHER_WRITER_PATIENCE_S
            if now >= self._hopeless_at(request, sent):
                self._withdrawn.append(request)
                self.fail(request, timed_out(request), now)
        for server_id in self._proof_requests.servers:
            limit = self._proof_limit(server_id)
            if limit is not None and now >= limit:
                error = PeerTimeoutError(f"server {server_id} did not prove in time the share that it showed")
                self._cannot_prove(server_id, {}, error, now)


def _differs(front: bytes, tests: Tests) -> bool:
    """Whether a share with this front fails one of its tests."""
    return any(front[offset : offset + length] != specimen for offset, length, specimen in tests)
