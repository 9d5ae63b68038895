"""One to n - k servers that lie about a mutable file or directory, in any way and order: the honest servers decide.

Readers get the newest version that the honest servers hold whole, or a newer one that some writer has signed; writers build
upon such a version, and what they acknowledge is on the honest servers. Whatever the liars say, nothing fails but a write
for which too few servers are honest.

A long search, in pieces that differ by their seed: `HYPOTHESIS_PROFILE=search LYING_CASES=1000 pytest --hypothesis-seed=1 -s`
with this file; it prints how many cases and steps there were, and how often each lie was used.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from grid.caps import DirectoryCap, LitCap
from grid.directory.edits import SetChild
from grid.directory.file_store import FileStore
from grid.engine.grid import Encoding
from grid.errors import ConflictError, NotHappyError
from grid.mutable.create import create_mutable
from grid.mutable.node import MutableFile
from grid.mutable.read import layout_cache
from grid.mutable.share import geometry
from grid.mutable.share.geometry import MDMF_SEGMENT_SIZE, FormatName
from grid.mutable.share.prefix import Prefix
from grid.sinks import BytesSink
from tests.support.depth import examples
from tests.support.held_versions import is_of, versions_held, whole_versions
from tests.support.lying_slots import LIES, LyingServer
from tests.support.lying_writes import WRITE_LIES
from tests.support.mutable_grid import MutableGrid
from tests.support.mutable_key import known_key

T = TypeVar("T")
SEARCH_CASES = int(os.environ.get("LYING_CASES", "10000"))
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
SHAPES = [Encoding(), Encoding(k=2, n=5, happy=3), Encoding(k=1, n=4, happy=2)]
SIZES = [0, 700, 30_000]

fired: Counter[str] = Counter()


class LyingMachine(RuleBasedStateMachine):
    """The contents are text to which names are added; those of a directory are its names.

    first_lie: what one liar says at first, whatever is drawn.
    """

    first_lie: str | None = None

    @initialize(
        format=st.sampled_from(["sdmf", "mdmf"]),
        shape=st.sampled_from(SHAPES),
        seed=st.integers(0, 99),
        size=st.sampled_from(SIZES),
        first_read=st.sampled_from([layout_cache.FIRST_READ, 2167]),
        segment_size=st.sampled_from([MDMF_SEGMENT_SIZE, 3000]),
        is_directory=st.booleans(),
        liars=st.lists(st.sampled_from(sorted(LIES)), min_size=1, max_size=7),
    )
    def begin(
        self,
        format: FormatName,
        shape: Encoding,
        seed: int,
        size: int,
        first_read: int,
        segment_size: int,
        is_directory: bool,
        liars: list[str],
    ) -> None:
        """liars: the first lies of the lying servers; no more of them than the file survives."""
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(layout_cache, "FIRST_READ", first_read)
        self.patch.setattr(geometry, "MDMF_SEGMENT_SIZE", segment_size)
        self.shape, self.seed, self.is_directory = shape, seed, is_directory
        self.grid = MutableGrid(shape.n, shape, seed)
        clock = self.grid.runtime.clock
        self.servers = [LyingServer(f"server{index}", clock, seed=seed) for index in range(shape.n)]
        self.grid.servers[:] = self.servers
        self.cap = self.grid.create(b"" if is_directory else b"." * size, format)
        self.names = 0
        self.texts: dict[Prefix, bytes] = {}
        self.liars = self.servers[seed % shape.n :] + self.servers[: seed % shape.n]
        del self.liars[min(len(liars), shape.n - shape.k) :]
        self.acknowledged = self._newest()
        self._give_another_file(format)
        liars[0] = self.first_lie or liars[0]
        for server, lie in zip(self.liars, liars, strict=False):
            server.remember()
            server.lie = lie
        self.stores: dict[int, FileStore] = {}
        self.files: dict[int, MutableFile] = {}

    def _give_another_file(self, format: FormatName) -> None:
        """Shares of a file of another key, which liars show."""
        other = MutableGrid(self.shape.n, self.shape, self.seed + 1)
        making = create_mutable(b"another file", other.grid(), format=format)
        cap = other.run(making)
        shares = {n: bytes(held[0][1]) for n, held in other.shares(cap).items()}
        for server in self.liars:
            server.other_file = shares

    @rule(index=st.integers(0, 6), lie=st.sampled_from(sorted(LIES)), remember=st.booleans())
    def tell(self, index: int, lie: str, remember: bool) -> None:
        """A liar tells another lie. remember: it records the present, to show it later as the past."""
        server = self.liars[index % len(self.liars)]
        server.lie = lie
        if remember:
            server.remember()

    @rule(index=st.integers(0, 6), lie=st.sampled_from(["", *sorted(WRITE_LIES)]))
    def deny(self, index: int, lie: str) -> None:
        """A liar also lies about writes, if enough honest servers remain for a safe write."""
        server = self.liars[index % len(self.liars)]
        server.write_lie = None
        denying = sum(liar.write_lie is not None for liar in self.liars)
        if lie and denying < self.shape.n - self.shape.happy:
            server.write_lie = WRITE_LIES[lie]

    @rule(process=st.integers(1, 3), length=st.integers(0, 3000))
    def add(self, process: int, length: int) -> None:
        """A name is added."""
        before, name = self._newest(), self._fresh_name(length)
        allowed = self._allowed(self.acknowledged)
        if self.is_directory:
            writing: Any = (
                self._store(process).directory(self._directory_cap).edit([SetChild(name.decode(), LitCap(data=b"x"))])
            )
        else:
            writing = self._file(process).modify(lambda old, first: old if name in old and not first else old + name)
        if not self._write(writing):
            return
        after = self.acknowledged = self._newest()
        assert after.order > before.order, "what was acknowledged is not on the honest servers"
        assert self._text(after) in {self._with(text, name) for text in allowed}

    @rule(process=st.integers(1, 3), length=st.integers(0, 40_000))
    def overwrite(self, process: int, length: int) -> None:
        """New contents."""
        if self.is_directory:
            return
        before, text = self._newest(), self._fresh_name(length)
        if not self._write(self._file(process).overwrite(text)):
            return
        after = self.acknowledged = self._newest()
        assert after.order > before.order and self._text(after) == text

    @rule(process=st.integers(1, 3), position=st.integers(0, 30_000), length=st.integers(0, 2000))
    def update(self, process: int, position: int, length: int) -> None:
        """A part of the contents changes."""
        if self.is_directory:
            return
        before, name, allowed = self._newest(), self._fresh_name(length), self._allowed(self.acknowledged)
        offset = min(position, *(len(text) for text in allowed))
        if not self._write(self._file(process).update(offset, name)):
            return
        after = self.acknowledged = self._newest()
        assert after.order > before.order
        assert self._text(after) in {text[:offset] + name + text[offset + len(name) :] for text in allowed}

    @rule(holders=st.sets(st.integers(0, 9), min_size=1, max_size=4), length=st.sampled_from([0, 600, 20_000]))
    def die(self, holders: set[int], length: int) -> None:
        """A writer dies when some servers have its version: liars, or too few honest ones to read it from."""
        if self.is_directory and length > 600:
            return
        kept = [
            {number: bytearray(data) for number, data in server.slots.get(self._index, {}).items()}
            for server in self.servers
        ]
        lies = [server.lie for server in self.servers]
        denials = [server.write_lie for server in self.servers]
        for server in self.servers:
            server.lie = server.write_lie = None
        self.grid.run(self.grid.open(self.cap, process=9).overwrite(self._pack(length)))
        for server, lie, denial in zip(self.servers, lies, denials, strict=True):
            server.lie, server.write_lie = lie, denial
        for index, server in enumerate(self.servers):
            if index not in holders:
                server.slots[self._index] = kept[index]
        if not self._whole():
            for server, slot in zip(self.servers, kept, strict=True):
                server.slots[self._index] = slot

    def _pack(self, length: int) -> bytes:
        """Contents of that many bytes, more or less; of a directory none, or those of any other."""
        if not length:
            return b""
        name = self._fresh_name(length)
        if not self.is_directory:
            return name
        grid = MutableGrid()
        cap = grid.create(b"")
        store = FileStore(grid=grid.grid(1))
        grid.run(store.directory(DirectoryCap(body=cap)).edit([SetChild(name.decode(), LitCap(data=b"x"))]))
        return grid.read(cap)

    @rule(process=st.integers(1, 3), read_only=st.booleans(), part=st.booleans())
    def read(self, process: int, read_only: bool, part: bool) -> None:
        """Somebody reads all, or a part."""
        allowed = self._allowed()
        if self.is_directory:
            cap = self._directory_cap
            listed = self.run(self._store(process).directory(cap.read_cap() if read_only else cap).list())
            assert b" ".join(sorted(name.encode() for name in listed)) in allowed
        elif part:
            sink = BytesSink()
            self.run(self._file(process).read(sink, 300, 5000))
            assert bytes(sink.data) in {text[300:5300] for text in allowed}
        else:
            cap_used = self.cap.read_cap() if read_only else self.cap
            assert self.run(self.grid.open(cap_used, process=process).read_all()) in allowed

    @rule(process=st.integers(1, 3), verify=st.booleans())
    def check(self, process: int, verify: bool) -> None:
        """A check finds a version that can be read, and none that is older than that of the honest servers."""
        result = self.run(self._file(process).check(verify=verify))
        assert result.recoverable
        best = result.found.best
        assert best is not None and best.order >= self._newest().order

    @rule(process=st.integers(1, 3), force=st.just(True))
    def repair(self, process: int, force: bool) -> None:
        """A repair changes no contents."""
        allowed, before = self._allowed(), self._newest()
        if not self._write(self._file(process).repair(force=force)):
            return
        after = self._newest()
        assert after.order >= before.order and self._text(after) in allowed

    @rule(process=st.integers(1, 3))
    def reopen(self, process: int) -> None:
        """A process reopens the file, and knows what it remembers of all files."""
        self.files.pop(process, None)
        self.stores.pop(process, None)

    @invariant()
    def count(self) -> None:
        fired["a step"] += 1

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.grid.run(coroutine)

    @property
    def _index(self) -> bytes:
        assert self.cap.storage_index is not None
        return self.cap.storage_index

    @property
    def _directory_cap(self) -> DirectoryCap:
        return DirectoryCap(body=self.cap)

    def _file(self, process: int) -> MutableFile:
        if process not in self.files:
            self.files[process] = self.grid.open(self.cap, process=process)
        return self.files[process]

    def _store(self, process: int) -> FileStore:
        if process not in self.stores:
            self.stores[process] = FileStore(grid=self.grid.grid(process))
        return self.stores[process]

    def _fresh_name(self, length: int) -> bytes:
        self.names += 1
        name = b"<%04d>" % self.names
        return name if self.is_directory else name + b"x" * length

    def _with(self, text: bytes, name: bytes) -> bytes:
        return b" ".join(sorted([*text.split(), name])) if self.is_directory else text + name

    def _newest(self) -> Prefix:
        """The newest version that the honest servers hold whole."""
        whole = self._whole()
        assert whole, "the honest servers hold no version any more"
        return max(whole, key=lambda prefix: prefix.order)

    def _whole(self) -> list[Prefix]:
        honest = [server for server in self.servers if server not in self.liars]
        return whole_versions(self._index, honest, len(self.servers))

    def _write(self, coroutine: Coroutine[Any, Any, object]) -> bool:
        """Whether the write was acknowledged.

        It may give way only to some writer's newer version, and fall short only where fewer than `happy` servers are honest.
        """
        newest = max(versions_held(self._index, self.servers), key=lambda prefix: prefix.order)
        has_rival = newest.order > self._newest().order
        try:
            self.run(coroutine)
        except ConflictError:
            assert has_rival, "nobody else has written"
            return False
        except NotHappyError:
            assert len(self.servers) - len(self.liars) < self.shape.happy, "enough honest servers were there"
            fired["too few honest servers"] += 1
            return False
        return True

    def _allowed(self, since: Prefix | None = None) -> set[bytes]:
        """What a read may return: the newest complete version of the honest servers, or anything signed since.

        since: the version that counts instead. Who knows the file as it was builds upon that, and wins over a writer who
        never learned that its version is safe.
        """
        floor = (since or self._newest()).order
        readable = [
            prefix for prefix, numbers in versions_held(self._index, self.servers).items() if len(numbers) >= prefix.k
        ]
        # All shares of an empty version are alike: one of them is all of it.
        empty = [prefix for prefix in versions_held(self._index, self.servers) if not prefix.size]
        return {self._text(prefix) for prefix in [*readable, *empty] if prefix.order >= floor}

    def _text(self, prefix: Prefix) -> bytes:
        """The contents of a version, read where there is no other."""
        if not prefix.size:
            return b""
        if prefix not in self.texts:
            grid = MutableGrid(self.shape.n, self.shape)
            for server, held in zip(grid.servers, self.servers, strict=True):
                shares = held.slots.get(self._index, {}).items()
                server.slots[self._index] = {n: bytearray(d) for n, d in shares if is_of(d, prefix)}
            if self.is_directory:
                listed = grid.run(FileStore(grid=grid.grid(1)).directory(self._directory_cap).list())
                self.texts[prefix] = b" ".join(sorted(name.encode() for name in listed))
            else:
                self.texts[prefix] = grid.read(self.cap)
        return self.texts[prefix]

    def teardown(self) -> None:
        """Record which lies were used."""
        fired["a case"] += 1
        if hasattr(self, "patch"):
            self.patch.undo()
        for server in getattr(self, "servers", ()):
            fired.update(server.fired)
            fired["a write"] += server.lies


def test_file_when_servers_lie_then_the_honest_ones_decide() -> None:
    fired.clear()
    known_key()
    asked = settings().max_examples
    run(SEARCH_CASES if asked >= settings.get_profile("search").max_examples else max(examples(200), asked))
    for lie in sorted(LIES.keys() - fired.keys()):
        LyingMachine.first_lie = lie
        run(20)
    LyingMachine.first_lie = None
    print(", ".join(f"{name}: {count}" for name, count in fired.most_common()))
    assert {*LIES, "a write"} <= fired.keys(), f"never used: {sorted(LIES.keys() - fired.keys())}"


def run(count: int) -> None:
    limits = settings(max_examples=count, stateful_step_count=12, report_multiple_bugs=False, phases=PHASES)
    run_state_machine_as_test(LyingMachine, settings=limits)
