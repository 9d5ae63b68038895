"""A virtual grid of slot servers with one client: the base of most tests of mutable files."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from attrs import evolve

from grid.caps import KnownCap
from grid.engine.grid import Encoding, Grid
from grid.mutable.create import create_mutable
from grid.mutable.node import MutableFile
from grid.mutable.share.geometry import FormatName
from grid.mutable.share.keys import WriteCap
from grid.placement.leases import LeaseMaster
from grid.ports import Buffer, Event, ServerId, Source
from tests.support.grids import grid_of
from tests.support.mutable_key import known_key
from tests.support.scripted_slots import SlotServer
from tests.support.virtual_time import InlineCpu, SeededEntropy, VirtualRuntime

T = TypeVar("T")


class OtherProcess:
    """A runtime with the same clock, whose turns are independent of the first one's."""

    def __init__(self, first: VirtualRuntime, seed: int) -> None:
        self.clock = first.clock
        self.cpu = InlineCpu()
        self.entropy = SeededEntropy(seed)


class MutableGrid:
    """Servers, a runtime, and files made with the published key."""

    def __init__(self, count: int = 10, shape: Encoding | None = None, seed: int = 0) -> None:
        self.runtime = VirtualRuntime(seed)
        self.servers = [SlotServer(f"server{index}", self.runtime.clock) for index in range(count)]
        self.shape = shape or Encoding()
        self.leases = LeaseMaster(bytes(range(32)))
        self.events: list[Event] = []
        self._others: dict[int, OtherProcess] = {}
        self._grids: dict[int, Grid] = {}

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result, in virtual time."""
        return self.runtime.run(coroutine)

    def create(self, contents: Buffer | Source, format: FormatName = "sdmf") -> WriteCap:
        """A file of the published key."""
        return self.run(self.creating(contents, format))

    async def creating(self, contents: Buffer | Source, format: FormatName = "sdmf") -> WriteCap:
        return await create_mutable(contents, self.grid(), format=format, key=known_key())

    def open(self, cap: KnownCap, *, process: int = 0, shape: Encoding | None = None) -> MutableFile:
        """The file, reopened, by another process if `process` is not 0: one that remembers what it has met."""
        return MutableFile(cap, evolve(self.grid(process), encoding=shape or self.shape))

    def grid(self, process: int = 0) -> Grid:
        """The servers as that process uses them, with its memory of them."""
        grid = self._grids.get(process)
        if grid is None:
            runtime = self.process(process)
            grid = grid_of(self.servers, runtime, leases=self.leases, observer=self.events.append)
            self._grids[process] = grid
        return evolve(grid, servers=self.servers, encoding=self.shape, leases=self.leases)

    def process(self, number: int) -> VirtualRuntime | OtherProcess:
        """The runtime of a process."""
        if not number:
            return self.runtime
        return self._others.setdefault(number, OtherProcess(self.runtime, number))

    def read(self, cap: KnownCap) -> bytes:
        """The contents, by a new reader."""
        return self.run(self.open(cap).read_all())

    def server(self, server_id: ServerId) -> SlotServer:
        """The server of that name."""
        return next(server for server in self.servers if server.identity.server_id == server_id)

    def shares(self, cap: KnownCap) -> dict[int, list[tuple[SlotServer, bytearray]]]:
        """Every share of the file, by number, with its server."""
        index = cap.storage_index
        assert index is not None
        found: dict[int, list[tuple[SlotServer, bytearray]]] = {}
        for server in self.servers:
            for number, data in server.slots.get(index, {}).items():
                found.setdefault(number, []).append((server, data))
        return found

    def share(self, cap: KnownCap, number: int) -> bytearray:
        """The bytes of the only share of that number, to be spoiled."""
        [(_, data)] = self.shares(cap)[number]
        return data

    def reset_counts(self) -> None:
        """Count calls and bytes from here on."""
        for server in self.servers:
            server.calls.clear()
            server.read_bytes = server.written_bytes = server.largest_write = 0
