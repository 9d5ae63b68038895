"""What servers are asked, and what they send, when one small file of a pack is read."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from attrs import evolve

from grid.caps import SliceCap
from grid.directory.file_store import FileStore
from grid.extents.files import open_immutable
from grid.extents.pack_writer import SEGMENT_SIZE
from grid.ports import Buffer, Range, ShareNumber, StorageIndex
from grid.sinks import BytesSink
from grid.storage.calls.service import StorageService
from tests.extents.test_reading import put_pack
from tests.support.tree_grid import TreeGrid

RANDOM = random.Random(1)
FILES = [RANDOM.randbytes(1024) for _ in range(4000)]
K = 3


class Meter:
    """Calls that read shares, and the bytes in their answers."""

    def __init__(self) -> None:
        self.calls = self.bytes = 0

    def count(self, answers: Iterable[Sequence[Buffer]]) -> None:
        self.calls += 1
        self.bytes += sum(len(piece) for pieces in answers for piece in pieces)

    def take(self) -> tuple[int, int]:
        taken = self.calls, self.bytes
        self.calls = self.bytes = 0
        return taken


class MeteredServer:
    """A server whose answers are counted."""

    def __init__(self, server: StorageService, meter: Meter) -> None:
        self._server, self._meter = server, meter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def find_shares(
        self, storage_index: StorageIndex, ranges: Sequence[Range] = ()
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        answer = await self._server.find_shares(storage_index, ranges)
        self._meter.count(answer.values())
        return answer

    async def read_shares(
        self, storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        answer = await self._server.read_shares(storage_index, wants)
        self._meter.count(answer.values())
        return answer


class Rig:
    """A pack of FILES on ten servers, and what readers cost."""

    def __init__(self) -> None:
        self._tree = TreeGrid()
        self.slices = put_pack(self._tree, FILES)
        self.meter = Meter()
        grid = self._tree.store.grid
        self.grid = evolve(grid, servers=[MeteredServer(server, self.meter) for server in self._tree.servers])

    def store(self) -> FileStore:
        """A client that knows nothing of the pack."""
        return FileStore(grid=self.grid)

    def read(self, store: FileStore, index: int) -> tuple[int, int]:
        """Read one file; return the calls and bytes that it cost."""
        sink = BytesSink()
        self._tree.run(store.read(self.slices[index], sink))
        assert bytes(sink.data) == FILES[index]
        return self.meter.take()

    def open(self, cap: SliceCap) -> bytes:
        """Read one file by itself."""
        sink = BytesSink()
        self._tree.run(open_immutable(cap, self.grid).read(sink))
        return bytes(sink.data)


@pytest.fixture(scope="module")
def rig() -> Rig:
    """One grid for all tests here."""
    return Rig()


def test_slice_when_nothing_is_known_of_its_pack_takes_one_round_trip(rig: Rig) -> None:
    for index in (0, 1777, 3999):
        assert rig.open(rig.slices[index]) == FILES[index]
        calls, count = rig.meter.take()
        assert calls == K
        assert count < 6 * SEGMENT_SIZE
