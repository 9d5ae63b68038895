"""Writers, readers, and servers that are slow, dead, silent, stale or lying, in any order, against a model.

Never a mix of versions: what is read, some writer has written. Never a lost change that was acknowledged, as long as
k honest servers that hold a version with it can be reached. And when all is well again, so is the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from twisted.internet.defer import Deferred, DeferredList

from grid.engine.grid import Encoding
from grid.errors import FormatError, GridError
from grid.mutable import publish
from grid.mutable.node import MutableFile
from grid.mutable.read import layout_cache
from grid.mutable.share import geometry
from grid.mutable.share.geometry import MDMF_SEGMENT_SIZE, FormatName
from grid.mutable.share.layout import parse_header
from grid.mutable.share.prefix import Prefix
from tests.support.depth import examples
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotScript, SlotServer

LIARS = ["frozen", "deaf", "corrupt", "short"]
ABSENCES = ["dead", "silent", "dead soon", "silent soon", "lost_answers"]
FAULTS = [*LIARS, *ABSENCES, "slow", "slow to write"]
MOST_FAULTY = 4

fired: Counter[str] = Counter()


NAME_SIZE = 5
"""Bytes of a name: those of one kind of change may replace those of another, and never a part of them."""

MOST_UPDATES = 4
"""Updates of one file: each doubles what a reader may find."""


class MutableMachine(RuleBasedStateMachine):
    """Changes are names, added at the end of the file by `modify`, by an overwrite with all that is known to be in it,
    or by an update behind what its writer has last seen as the end. The last two may undo what others do meanwhile,
    and nothing that was acknowledged before they began.
    """

    @initialize(
        format=st.sampled_from(["sdmf", "mdmf"]),
        shape=st.sampled_from([(3, 10, 7), (1, 4, 3), (5, 10, 8)]),
        seed=st.integers(0, 99),
        segment_size=st.sampled_from([MDMF_SEGMENT_SIZE, 9]),
        first_read=st.sampled_from([layout_cache.FIRST_READ, 2167]),
        in_pieces=st.booleans(),
        faults=st.lists(st.tuples(st.integers(0, 9), st.sampled_from(FAULTS), st.integers(1, 20)), max_size=3),
    )
    def begin(
        self,
        format: FormatName,
        shape: tuple[int, int, int],
        seed: int,
        segment_size: int,
        first_read: int,
        in_pieces: bool,
        faults: list[tuple[int, str, int]],
    ) -> None:
        """in_pieces: MDMF files count as large; with small segments, they have many.

        first_read: what is asked for of a share of which nothing is known; with little, all processes have speculation.
        """
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(geometry, "MDMF_SEGMENT_SIZE", segment_size)
        self.patch.setattr(layout_cache, "FIRST_READ", first_read)
        self.patch.setattr(publish, "WHOLE_BYTES", 0 if in_pieces else publish.WHOLE_BYTES)
        k, n, happy = shape
        self.grid = MutableGrid(10, Encoding(k=k, n=n, happy=happy), seed)
        self.cap = self.grid.create(b"", format)
        self.files = {process: self.grid.open(self.cap, process=process) for process in (1, 2, 3, 4)}
        self.texts = {b""}
        self.acknowledged: set[bytes] = set()
        self.newest: Prefix | None = None
        self.count = 0
        self.updates: list[tuple[int, bytes]] = []
        self.faults: dict[str, str] = {}
        self.seed = seed
        for fault in faults:
            self.spoil(*fault)

    @rule(index=st.integers(0, 9), fault=st.sampled_from(FAULTS), amount=st.integers(1, 20))
    def spoil(self, index: int, fault: str, amount: int) -> None:
        """Have a server go wrong, if not too many have."""
        server = self.grid.servers[index]
        name = str(server.identity.server_id)
        if name not in self.faults and len(self.faults) >= MOST_FAULTY:
            return
        self.faults[name] = fault
        server.script = self._script(server, fault, amount)
        if fault == "frozen":
            server.freeze()

    def _script(self, server: SlotServer, fault: str, amount: int) -> SlotScript:
        calls = len(server.calls)
        held = list(server.slots.get(self.cap.storage_index, {}))
        scripts = {
            "frozen": {},
            "deaf": {"deaf": True},
            "corrupt": {"corrupt": {(number, 37 * amount): 1 for number in held}},
            "short": {"short": dict.fromkeys(held, 90 * amount)},
            "dead": {"dead_from": 0},
            "silent": {"silent_from": 0},
            "dead soon": {"dead_from": calls + amount // 5},
            "silent soon": {"silent_from": calls + amount // 5},
            "lost_answers": {"lost_answers": True},
            "slow": {"delay_s": amount / 8},
            "slow to write": {"write_delay_s": amount / 4},
        }
        return SlotScript(**scripts[fault])  # type: ignore[arg-type]

    @rule(index=st.integers(0, 9))
    def heal(self, index: int) -> None:
        """Let a server behave again; it stays without everything that it missed."""
        server = self.grid.servers[index]
        self.faults.pop(str(server.identity.server_id), None)
        server.script = SlotScript()

    @rule(index=st.integers(0, 9))
    def lose(self, index: int) -> None:
        """A disk is replaced by an empty one, where the file survives that."""
        server = self.grid.servers[index]
        kept = server.slots.pop(self.cap.storage_index, None)
        if kept and self._is_protected():
            return
        if kept is not None:
            server.slots[self.cap.storage_index] = kept

    @rule(
        starts=st.lists(
            st.tuples(st.integers(1, 4), st.integers(0, 30), st.sampled_from(["modify", "overwrite", "update"])),
            min_size=1,
            max_size=4,
            unique_by=lambda s: s[0],
        )
    )
    def write(self, starts: list[tuple[int, int, str]]) -> None:
        """Processes add a name each, beginning some tenths of a second apart."""
        if not self._is_protected():
            self.acknowledged.clear()
        known = b"".join(sorted(self.acknowledged))
        adding, added = [], []
        for process, tenths, how in starts:
            name = self._fresh_name()
            added.append(self._change(process, how, name, known))
            adding.append(self._settle(process, name, added[-1], tenths / 10))
        blind = any(how != "modify" for _, _, how in starts)
        before = set(self.acknowledged)
        self.grid.run(_all(adding))
        if blind and len(starts) > 1:
            self.acknowledged = before

    def _fresh_name(self) -> bytes:
        self.count += 1
        return b"<%03d>" % self.count

    def _change(self, process: int, how: str, name: bytes, known: bytes) -> Coroutine[Any, Any, None]:
        file = self.files[process]

        def add(old: bytes, _: bool) -> bytes | None:
            assert old in self.texts, "a mix"
            if name in old:
                return None
            self._expect(old + name)
            return old + name

        async def update() -> None:
            end = await file.size()
            self.updates.append((end, name))
            for text in list(self.texts):
                self._expect(text)
            await file.update(end, name)

        if how == "overwrite":
            self._expect(known + name)
            return file.overwrite(known + name)
        return update() if how == "update" and len(self.updates) < MOST_UPDATES else file.modify(add)

    def _expect(self, text: bytes) -> None:
        """Record what a reader may find from now on: the text, also with any of the updates in it."""
        self.texts.add(text)
        for end, name in self.updates:
            changed = text[:end] + name + text[end + NAME_SIZE :]
            if len(text) >= end and changed not in self.texts:
                self._expect(changed)

    def _note_speculation(self, file: MutableFile) -> None:
        known = file._grid.remembered.of(layout_cache.KnownFiles).get(file._keys.storage_index)
        if known is not None:
            fired["speculation"] += 1

    async def _settle(self, process: int, name: bytes, change: Coroutine[Any, Any, None], wait_s: float) -> None:
        await self.grid.runtime.clock.sleep(wait_s)
        self._note_speculation(self.files[process])
        try:
            await change
        except GridError:
            return
        self.acknowledged.add(name)
        memory = self.files[process]._memory
        assert memory is not None and memory.best is not None
        if self.newest is None or memory.best.order > self.newest.order:
            self.newest = memory.best
            self._require_spread()

    @rule(process=st.integers(0, 4))
    def read(self, process: int) -> None:
        """Any process, or one that has just been started, reads."""
        file = self.files[process] if process else self.grid.open(self.cap.read_cap())
        protected = self._is_protected()
        self._note_speculation(file)
        try:
            text = self.grid.run(file.read_all())
        except GridError as error:
            assert not protected, f"{error}"
            return
        assert text in self.texts, "a mix"
        if protected:
            assert self._names_in(text), f"of {self.acknowledged} {text!r} has lost some"

    @rule(process=st.integers(1, 4))
    def reopen(self, process: int) -> None:
        """A process reopens the file, and knows only what it remembers of all files that it has met."""
        self.files[process] = self.grid.open(self.cap, process=process)

    @rule(process=st.integers(1, 4))
    def repair(self, process: int) -> None:
        """A repair changes no contents."""
        if not self._is_protected():
            return
        try:
            self.grid.run(self.files[process].repair())
        except GridError:
            return

    @invariant()
    def honest_when_calm(self) -> None:
        """With all servers well again for a while, a change is made and read."""
        if not hasattr(self, "grid") or self.count % 5 != 4 or self.faults:
            return
        if not self._is_protected():
            self.count += 1
            return
        name = self._fresh_name()
        self.grid.run(self._settle(1, name, self._change(1, "modify", name, b""), 0))
        assert name in self.acknowledged

    def _require_spread(self) -> None:
        """What was just acknowledged is where it was said to be, as far as servers did not lie."""
        holders = set()
        for server in self.grid.servers:
            for data in server.slots.get(self.cap.storage_index, {}).values():
                try:
                    order = parse_header(data)[0].order
                except FormatError:
                    continue  # Of a version that another writer has not finished yet.
                if self.newest is None or order >= self.newest.order:
                    holders.add(server.identity.server_id)
        liars = sum(server.fired["deaf"] > 0 for server in self.grid.servers)
        assert len(holders) >= self.grid.shape.happy - liars

    def _names_in(self, text: bytes) -> bool:
        return all(name in text for name in self.acknowledged)

    def _is_protected(self) -> bool:
        """Whether honest servers that can be reached hold enough of the newest acknowledged version, or of a newer one."""
        held: dict[Prefix, set[int]] = {}
        for server in self.grid.servers:
            if self.faults.get(str(server.identity.server_id), "slow") not in {"slow", "slow to write"}:
                continue
            for number, data in server.slots.get(self.cap.storage_index, {}).items():
                try:
                    held.setdefault(parse_header(data)[0], set()).add(number)
                except FormatError:
                    continue
        floor = (0, b"") if self.newest is None else self.newest.order
        return any(len(numbers) >= prefix.k and prefix.order >= floor for prefix, numbers in held.items())

    def teardown(self) -> None:
        """Note which faults came to pass."""
        if hasattr(self, "patch"):
            self.patch.undo()
        for server in getattr(self, "grid", MutableGrid(0)).servers:
            fired.update(server.fired)


async def _all(coroutines: list[Coroutine[Any, Any, None]]) -> None:
    outcomes: list[tuple[bool, Any]] = await DeferredList(
        [Deferred.fromCoroutine(coroutine) for coroutine in coroutines], consumeErrors=True
    )
    for succeeded, outcome in outcomes:
        if not succeeded:
            outcome.raiseException()


EVERYTHING = {
    "frozen",
    "deaf",
    "corrupt",
    "short",
    "dead",
    "silent",
    "lost_answers",
    "slow",
    "slow to write",
    "speculation",
}
"""What has to happen at least once."""

MOST_MACHINES = 6
"""Whatever can happen has long happened by then."""


def test_file_when_anything_happens_to_its_servers_then_no_acknowledged_change_is_lost() -> None:
    fired.clear()
    for number in range(MOST_MACHINES):
        # A class of another name is another machine, for which Hypothesis draws other examples.
        machine = type(f"MutableMachine{number}", (MutableMachine,), {})
        run_state_machine_as_test(machine, settings=settings(max_examples=examples(160), stateful_step_count=30))
        if fired.keys() >= EVERYTHING:
            break
    assert fired.keys() >= EVERYTHING
