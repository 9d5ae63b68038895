"""One put, step by step: every answer, failure, silence and second is a separate step, in any order.

The store, select and put plans are run as every put runs them, against servers that do nothing by themselves. After every
step: no more under way than the windows allow, and nothing waited for without an alarm. In the end, and always
within bounds: what success counts was said to be durable, and failure has given up what it was granted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from unittest.mock import patch

from attrs import frozen
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from grid.caps import ChkCap
from grid.engine.grid import Encoding
from grid.errors import NoServersError, NotHappyError, PeerGoneError, PeerRefusedError, PeerTimeoutError
from grid.immutable import put as put_module
from grid.immutable.put import PutResult, put
from grid.immutable.write import put_plan
from grid.placement.happiness import happiness
from grid.ports import Buffer, Event, ServerId, ShareNumber
from tests.support.depth import examples
from tests.support.gated_pool import GatedPool
from tests.support.grids import grid_of
from tests.support.scripted_grid import SECRET, encoded, noise
from tests.support.shares import EncodedFile
from tests.support.stepped_server import Call, SteppedServer
from tests.support.virtual_time import SeededEntropy, VirtualClock

BATCH_BYTES = 3000
LIVE_BYTES = 2 * BATCH_BYTES
WRITE_WINDOW = 7000
ASK_FIRST_SIZE = 1500
"""As in life, but of bytes instead of megabytes, so that a small file has many batches."""

LIMIT_S = 600.0
LIMIT_TURNS = 3000
"""How long a put may take and how often it may be woken, whatever its servers do."""

ENCODINGS = [
    Encoding(k=1, n=1, happy=1, max_segment_size=900),
    Encoding(k=2, n=4, happy=3, max_segment_size=600),
    Encoding(k=1, n=3, happy=3, max_segment_size=600),
    Encoding(k=2, n=5, happy=4, max_segment_size=900),
    Encoding(k=3, n=6, happy=4, max_segment_size=900),
    Encoding(k=3, n=6, happy=0, max_segment_size=900),
    Encoding(k=3, n=4, happy=1, max_segment_size=900),
]
MOODS = ["slow", "stalls", "dead", "refuses", "tiny", "chokes", "claims", "generous", "full", "read_only"]
ERRORS = [PeerGoneError("gone"), PeerTimeoutError("late"), PeerRefusedError("no", kind="KeyError"), ValueError("odd")]
FAULTS = {*MOODS, "hang up", "answer lost", "failed", "cancelled", "success", "failure", "overlap", "stored"}

fired: Counter[str] = Counter()


@frozen
class Hands:
    """The runtime: time and work both move only when the machine says so."""

    clock: VirtualClock
    cpu: GatedPool
    entropy: SeededEntropy


class GatedSource:
    """Bytes whose reading is work like any other."""

    def __init__(self, data: bytes, pool: GatedPool) -> None:
        self.size = len(data)
        self._data = data
        self._pool = pool

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Those bytes, once the pool is released."""
        return await self._pool.run(lambda: self._data[offset : offset + length])


class Puts(RuleBasedStateMachine):
    """One put from its first question to its end."""

    def __init__(self) -> None:
        super().__init__()
        self.servers: list[SteppedServer] = []
        self.outcome: list[PutResult | Failure] = []
        self.disturbed = False
        self.read_bytes = 0
        self.done_bytes = 0
        sizes = {"WRITE_BYTES": BATCH_BYTES, "LIVE_BYTES": LIVE_BYTES, "WRITE_WINDOW": WRITE_WINDOW}
        sizes["DISTANT_WINDOW"] = WRITE_WINDOW
        self._patches = [patch.object(put_plan, name, size) for name, size in sizes.items()]
        self._patches.append(patch.object(put_module, "ASK_FIRST_SIZE", ASK_FIRST_SIZE))
        for each in self._patches:
            each.start()

    @initialize(
        encoding=st.sampled_from(ENCODINGS),
        size=st.sampled_from([57, 900, 7000, 20_000]),
        count=st.integers(1, 6),
        gated=st.booleans(),
        known=st.booleans(),
        held=st.dictionaries(st.integers(0, 5), st.frozensets(st.integers(0, 5), max_size=3), max_size=2),
        moods=st.dictionaries(st.integers(0, 2), st.sampled_from(MOODS), max_size=3),
    )
    def begin(
        self,
        encoding: Encoding,
        size: int,
        count: int,
        gated: bool,
        known: bool,
        held: dict[int, frozenset[int]],
        moods: dict[int, str],
    ) -> None:
        """Some servers, a few of which may hold shares of the file already.

        gated: local work waits as well. known: servers take whole shares, and are known to.
        """
        self.encoding = encoding
        self.gated = gated
        self.pool = GatedPool()
        self.clock = VirtualClock()
        self.servers = [SteppedServer(f"s{index}", self.clock) for index in range(count)]
        self.file: EncodedFile = encoded(noise(size), encoding.k, encoding.n, encoding.max_segment_size)
        for server in self.servers:
            server.script.known = known
        for index, numbers in held.items():
            if index < count:
                have = {n: self.file.shares[n] for n in numbers if n < encoding.n}
                self.servers[index].shares[self.file.cap.storage_index] = have
        self.source = GatedSource(noise(size), self.pool)
        self.disturbed = count < max(encoding.happy, 1) or bool(held)
        runtime = Hands(self.clock, self.pool, SeededEntropy(0))
        task = Deferred.fromCoroutine(
            put(
                self.source,
                grid_of(self.servers, runtime, encoding=encoding, convergence=SECRET, observer=self._observe),
            )
        )
        task.addBoth(self.outcome.append)
        for index, mood in moods.items():
            self.spoil(index, mood, frozenset({0, 3}))

    def _observe(self, seen: Event) -> None:
        if seen.what == "phase" and seen.detail == "pushing":
            self.read_bytes = self.done_bytes = (
                0  # A second try, with servers that were in doubt, reads from the start.
            )
        elif seen.what == "send" and seen.detail == "ReadSource":
            self.read_bytes += seen.count
        elif seen.what == "progress" and self.read_bytes:
            self.done_bytes = seen.count

    def _calls(self) -> Iterator[tuple[SteppedServer, Call]]:
        """Calls that a test may answer."""
        for server in self.servers:
            if "stalls" not in server.moods:
                yield from ((server, call) for call in list(server.waiting) if call.timer is None)

    @rule(data=st.data(), lost=st.sampled_from([False, False, False, True]))
    def answer_one(self, data: st.DataObject, lost: bool) -> None:
        """A server does what it was asked; the answer may get lost."""
        if calls := list(self._calls()):
            server, call = data.draw(st.sampled_from(calls))
            self.disturbed |= lost
            server.answer(call, lost=lost)

    @rule(data=st.data(), error=st.sampled_from(ERRORS))
    def fail_one(self, data: st.DataObject, error: Exception) -> None:
        """A server ignores what it was asked."""
        if calls := list(self._calls()):
            server, call = data.draw(st.sampled_from(calls))
            server.fired["failed"] += 1
            self.disturbed = True
            server.fail(call, error)

    @rule(chosen=st.frozensets(st.integers(0, 5)))
    def answer_all(self, chosen: frozenset[int]) -> None:
        """Some servers answer everything, including the requests that follow."""
        for server, call in list(self._calls()):
            if self.servers.index(server) in chosen:
                server.answer(call)
        self.turn()

    @rule(rounds=st.integers(1, 6))
    def flow(self, rounds: int) -> None:
        """All is well for a while."""
        for _ in range(rounds):
            self._flow_once()

    @precondition(lambda self: self.servers and self.gated)
    @rule(count=st.integers(1, 4))
    def work(self, count: int) -> None:
        """Some of the local work is done."""
        for _ in range(min(count, self.pool.waiting_count)):
            self.pool.release()

    @rule()
    def turn(self) -> None:
        """The event loop makes a turn."""
        if not self.gated:
            self.pool.release_all()
        self.clock.task_clock.advance(0)

    @rule(seconds=st.sampled_from([0.4, 1.5, 5.0, 9.0, 16.0, 35.0, 65.0]))
    def wait(self, seconds: float) -> None:
        """Time passes, alarm by alarm."""
        self.disturbed = True
        end = self.clock.now() + seconds
        while (due := self._next_due()) is not None and due <= end:
            self._advance_to(due)
        self._advance_to(end)

    @rule(index=st.integers(0, 5), mood=st.sampled_from(MOODS), numbers=st.frozensets(st.integers(0, 7), min_size=1))
    def spoil(self, index: int, mood: str, numbers: frozenset[int]) -> None:
        """A server goes wrong, for good."""
        if index < len(self.servers):
            self.disturbed = True
            self.servers[index].spoil(mood, numbers)

    @rule(index=st.integers(0, 5))
    def hang_up(self, index: int) -> None:
        """A connection breaks; the server can be reached again."""
        if index < len(self.servers):
            self.disturbed = True
            self.servers[index].hang_up()

    @invariant()
    def windows_hold(self) -> None:
        """One question of a kind, a few writes a server, and a bounded part of the file."""
        for server in self.servers:
            for method, most in server.most.items():
                assert most == 1 or method in {"write", "abort"}, f"{most} {method} at once"
            assert server.most_written <= WRITE_WINDOW
        if self.servers:
            spread = self.encoding.n / self.encoding.k
            slack = self.encoding.n * self.encoding.max_segment_size
            assert (self.read_bytes - self.done_bytes) * spread <= LIVE_BYTES + slack

    @invariant()
    def alarms_are_set(self) -> None:
        """A put that waits for servers alone is woken even if none of them ever speaks again."""
        if self.servers and not self.outcome and not self.pool.waiting_count:
            assert self._next_due() is not None

    @invariant()
    def shares_are_right(self) -> None:
        """No server ever shows anything but a share of the file."""
        for server in self.servers:
            for number, share in server.shares.get(self.file.cap.storage_index, {}).items():
                assert share == self.file.shares[number]

    def teardown(self) -> None:
        """Whatever state it is in, the put ends."""
        try:
            if self.servers:
                self._end()
                self._require_outcome()
                self._require_nothing_left()
        finally:
            for each in self._patches:
                each.stop()
            for server in self.servers:
                fired.update({what for what, count in server.fired.items() if count})
                if server.most_written:
                    fired["overlap"] += 1

    def _end(self) -> None:
        for _ in range(LIMIT_TURNS):
            self._flow_once()
            self.pool.release_all()
            due = self._next_due()
            if self.outcome and due is None and not list(self._calls()):
                break
            if due is not None and not list(self._calls()):
                self._advance_to(due)
            self.windows_hold()
        assert self.outcome, "it does not end"
        assert self.clock.now() < LIMIT_S + 65 * 50

    def _flow_once(self) -> None:
        for server, call in list(self._calls()):
            server.answer(call)
        self.turn()

    def _next_due(self) -> float | None:
        return min((call.getTime() for call in self.clock.task_clock.getDelayedCalls()), default=None)

    def _advance_to(self, moment: float) -> None:
        self.clock.task_clock.advance(max(0.0, moment - self.clock.now()))
        if not self.gated:
            self.pool.release_all()

    def _require_outcome(self) -> None:
        (outcome,) = self.outcome
        if isinstance(outcome, Failure):
            fired["failure"] += 1
            assert outcome.check(NotHappyError, NoServersError), outcome.getTraceback()
            assert self.disturbed, "nothing went wrong"
            for server in self.servers:
                assert server.aborted >= server.granted - server.closed, "an allocation was not given up"
            return
        fired["success"] += 1
        assert isinstance(outcome.cap, ChkCap) and outcome.cap == self.file.cap
        durable: dict[ShareNumber, set[ServerId]] = {}
        for number, holders in outcome.sharemap.items():
            for holder in holders:
                server = self.servers[int(holder[1:])]
                assert number in server.closed | server.told, f"{holder} never said that it holds share {number}"
                durable.setdefault(number, set()).add(holder)
        assert happiness(durable) >= self.encoding.happy
        assert len(durable) >= self.encoding.k

    def _require_nothing_left(self) -> None:
        """Servers that can still be talked to keep no half of a share."""
        for server in self.servers:
            if not server.moods & {"stalls", "dead"}:
                assert not server.waiting and not server.incoming


def test_put_when_its_servers_do_anything_step_by_step_keeps_its_promises() -> None:
    fired.clear()
    count = max(examples(800), settings().max_examples)
    for _ in range(5):
        run_state_machine_as_test(Puts, settings=settings(max_examples=count, stateful_step_count=40))
        if fired.keys() >= FAULTS:
            return  # Nearly always at once; the rarest fault is late on a day of bad luck.
    assert fired.keys() >= FAULTS, f"never came to pass: {FAULTS - fired.keys()}"
