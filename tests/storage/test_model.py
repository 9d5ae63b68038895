"""Random calls on a server over a real disk and over memory, compared with a model of a few lines."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from attrs import define, field
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from grid.errors import BadWriteEnablerError, ConflictingWriteError, DataTooLargeError, GridError, PeerRefusedError
from grid.ports import ShareNumber, SlotAnswer, StorageIndex, StorageServer, TestWrite, Upload
from grid.storage.files import slot_writes
from grid.storage.files.disk import RealDisk
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.files.paths import INCOMING
from tests.contract.storage_server import lease, piece, plain, share_numbers, slot_secrets
from tests.support.storage import ServiceScene
from tests.support.stored_shares import files_below, stored_shares

FILES = [StorageIndex(bytes([number]) * 16) for number in (0, 1)]
SLOTS = [StorageIndex(bytes([number]) * 16) for number in (2, 3)]
SIZE = 40
WHOLE = (0, 10_000)

numbers = st.integers(0, 3)
some_numbers = st.sets(numbers, max_size=4)
raw = st.binary(max_size=30)
ranges = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), max_size=3)
tests = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 4), st.binary(max_size=4)), max_size=1)
vectors = st.builds(
    TestWrite,
    tests=st.one_of(st.just([]), tests),
    writes=st.lists(st.tuples(st.integers(0, 80), raw), max_size=3),
    new_length=st.one_of(st.none(), st.none(), st.integers(0, 100)),
)


@define
class ModelUpload:
    """What was written to each share of an upload: byte by byte, None where nothing came."""

    index: StorageIndex
    shares: dict[int, list[int | None]]


@define
class Model:
    """What a server holds."""

    shares: dict[StorageIndex, dict[int, bytes]] = field(factory=lambda: {index: {} for index in FILES})
    slots: dict[StorageIndex, dict[int, bytearray]] = field(factory=lambda: {index: {} for index in SLOTS})
    enablers: dict[tuple[StorageIndex, int], bytes] = field(factory=dict)
    uploads: list[ModelUpload] = field(factory=list)

    def begin(self, index: StorageIndex, wanted: set[int]) -> tuple[set[int], set[int]]:
        """(already, taken)."""
        busy = {number for upload in self.uploads if upload.index == index for number in upload.shares}
        taken = wanted - busy - self.shares[index].keys()
        self.uploads.append(ModelUpload(index, {number: [None] * SIZE for number in taken}))
        return set(self.shares[index]), taken

    def write(self, upload: ModelUpload, number: int, offset: int, data: bytes) -> type[GridError] | None:
        """Which error it ends with."""
        share = upload.shares.get(number)
        if share is None:
            return PeerRefusedError
        if any(old not in (None, new) for old, new in zip(share[offset:], data, strict=False)):
            return ConflictingWriteError
        if offset + len(data) > SIZE:
            return DataTooLargeError
        share[offset : offset + len(data)] = list(data)
        return None

    def close(self, upload: ModelUpload, number: int) -> type[GridError] | None:
        """Which error it ends with."""
        share = upload.shares.pop(number, None)
        if share is None:
            return PeerRefusedError
        self.shares[upload.index][number] = bytes(byte or 0 for byte in share)
        return None

    def test_and_write(
        self, index: StorageIndex, enabler: bytes, writes: dict[int, TestWrite], ranges: list[tuple[int, int]]
    ) -> tuple[bool, dict[int, list[bytes]]] | None:
        """The answer; None if the write enabler is wrong."""
        held = self.slots[index]
        if any(self.enablers[index, number] != enabler for number in held):
            return None
        data = {number: [bytes(share[o : o + s]) for o, s in ranges] for number, share in sorted(held.items())}
        passed = all(
            bytes(held.get(number, b"")[offset : offset + length]) == specimen
            for number, vector in writes.items()
            for offset, length, specimen in vector.tests
        )
        for number, vector in writes.items() if passed else ():
            self._write_slot(index, enabler, number, vector)
        return passed, data

    def _write_slot(self, index: StorageIndex, enabler: bytes, number: int, vector: TestWrite) -> None:
        held = self.slots[index]
        if vector.new_length == 0:
            held.pop(number, None)
            self.enablers.pop((index, number), None)
            return
        share = held.setdefault(number, bytearray())
        self.enablers.setdefault((index, number), enabler)
        for offset, new in vector.writes:
            share.extend(bytes(max(0, offset - len(share))))
            share[offset : offset + len(new)] = new
        if vector.new_length is not None:
            del share[vector.new_length :]


class ServersAgree(RuleBasedStateMachine):
    """The same calls on both servers and on the model."""

    def __init__(self) -> None:
        super().__init__()
        self.root = tempfile.mkdtemp(prefix="grid-storage-")
        self.scenes = [ServiceScene(RealDisk(self.root)), ServiceScene(MemoryDisk())]
        self.model = Model()
        self.uploads: list[list[Upload]] = []

    @initialize(limit=st.sampled_from([0, 2**20]))
    def begin(self, limit: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(slot_writes, "COPY_LIMIT", limit)
        self.patch.setattr(slot_writes, "COPY_FACTOR", 0 if not limit else 4)

    def teardown(self) -> None:
        for scene in self.scenes:
            scene.run(scene.service.stop())
            assert files_below(scene.disk, INCOMING) == []
        assert stored_shares(self.scenes[0].disk) == stored_shares(self.scenes[1].disk)
        self.patch.undo()
        shutil.rmtree(self.root)

    def both(self, call: Callable[[StorageServer], Any]) -> list[Any]:
        return [scene.run(call(scene.service)) for scene in self.scenes]

    @rule(index=st.sampled_from(FILES), wanted=some_numbers, owner=st.sampled_from([b"r", b"s"]))
    def allocate(self, index: StorageIndex, wanted: set[int], owner: bytes) -> None:
        expected = self.model.begin(index, wanted)
        answers = self.both(lambda server: server.allocate(index, lease(owner), share_numbers(*wanted), SIZE))
        for answer in answers:
            assert (set(answer.already), set(answer.upload.share_numbers)) == expected
        self.uploads.append([answer.upload for answer in answers])

    @rule(data=st.data(), number=numbers, offset=st.integers(0, SIZE), raw=raw, cut=st.integers(0, 30))
    def write(self, data: st.DataObject, number: int, offset: int, raw: bytes, cut: int) -> None:
        if self.uploads:
            which = data.draw(st.integers(0, len(self.uploads) - 1))
            error = self.model.write(self.model.uploads[which], number, offset, raw)
            write = piece(number, offset, raw[:cut], raw[cut:])
            for scene, upload in zip(self.scenes, self.uploads[which], strict=True):
                _expect(error, lambda: scene.run(upload.write([write])))  # noqa: B023

    @rule(data=st.data(), number=numbers)
    def close(self, data: st.DataObject, number: int) -> None:
        if self.uploads:
            which = data.draw(st.integers(0, len(self.uploads) - 1))
            error = self.model.close(self.model.uploads[which], number)
            for scene, upload in zip(self.scenes, self.uploads[which], strict=True):
                _expect(error, lambda: scene.run(upload.close([ShareNumber(number)])))  # noqa: B023

    @rule(data=st.data(), some=st.one_of(st.none(), some_numbers))
    def abort(self, data: st.DataObject, some: set[int] | None) -> None:
        if self.uploads:
            which = data.draw(st.integers(0, len(self.uploads) - 1))
            for number in range(4) if some is None else some:
                self.model.uploads[which].shares.pop(number, None)
            given = None if some is None else share_numbers(*some)
            for scene, upload in zip(self.scenes, self.uploads[which], strict=True):
                scene.run(upload.abort(given))

    @rule(index=st.sampled_from(SLOTS), enabler=st.sampled_from([b"w", b"w", b"w", b"x"]),
          owner=st.sampled_from([b"r", b"s", b"t", b"u", b"v"]),
          writes=st.dictionaries(numbers, vectors, max_size=3), ranges=ranges)  # fmt: skip
    def test_and_write(
        self,
        index: StorageIndex,
        enabler: bytes,
        owner: bytes,
        writes: dict[int, TestWrite],
        ranges: list[tuple[int, int]],
    ) -> None:
        expected = self.model.test_and_write(index, enabler, writes, ranges)
        given = {ShareNumber(number): vector for number, vector in writes.items()}
        for scene in self.scenes:
            call = scene.service.test_and_write(index, slot_secrets(enabler, owner), given, ranges)
            if expected is None:
                with pytest.raises(BadWriteEnablerError):
                    scene.run(call)
            else:
                answer: SlotAnswer = scene.run(call)
                assert (answer.passed, plain(answer.data)) == expected

    @rule(index=st.sampled_from(FILES + SLOTS), owner=st.sampled_from([b"r", b"s", b"t"]), later=st.integers(0, 5))
    def add_lease(self, index: StorageIndex, owner: bytes, later: int) -> None:
        for scene in self.scenes:
            scene.advance(later)
        self.both(lambda server: server.add_lease(index, lease(owner)))

    @rule(index=st.sampled_from(FILES), ranges=ranges, wanted=some_numbers)
    def read(self, index: StorageIndex, ranges: list[tuple[int, int]], wanted: set[int]) -> None:
        held = self.model.shares[index]
        expected = {number: [data[o : o + s] for o, s in ranges] for number, data in held.items()}
        for found in self.both(lambda server: server.find_shares(index, ranges)):
            assert plain(found) == expected
        wants = {ShareNumber(number): ranges for number in wanted}
        for found in self.both(lambda server: server.read_shares(index, wants)):
            assert plain(found) == {number: pieces for number, pieces in expected.items() if number in wanted}

    @rule()
    def restart(self) -> None:
        for upload in self.model.uploads:
            upload.shares.clear()
        self.scenes = [ServiceScene(scene.disk) for scene in self.scenes]
        self.model.uploads.clear()
        self.uploads.clear()

    @invariant()
    def slots_agree(self) -> None:
        for index in SLOTS:
            expected = {number: [bytes(data)] for number, data in self.model.slots[index].items()}
            for found in self.both(lambda server: server.read_slot(index, frozenset(), [WHOLE])):  # noqa: B023
                assert plain(found) == expected


def _expect(error: type[GridError] | None, call: Callable[[], None]) -> None:
    if error is None:
        call()
    else:
        with pytest.raises(error):
            call()


ServersAgree.TestCase.settings = settings(stateful_step_count=30)
TestServersAgree = ServersAgree.TestCase
