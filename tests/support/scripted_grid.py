"""A grid of scripted in-memory servers under virtual time, and user operations on it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from attrs import evolve
from twisted.internet.defer import Deferred, gatherResults

from grid.caps import ChkCap, ChkVerifyCap, LitCap
from grid.engine.grid import Encoding
from grid.errors import GridError
from grid.immutable.check import CheckResult, check
from grid.immutable.get import ImmutableFile
from grid.immutable.put import PutResult, put
from grid.immutable.read.get_plan import GetResult
from grid.immutable.repair import RepairResult, repair
from grid.immutable.share.geometry import Geometry
from grid.ports import Buffer, Event, Observer, Runtime, StorageServer, ignore_events
from tests.support.grids import grid_of
from tests.support.scripted_server import Script, ScriptedServer
from tests.support.shares import EncodedFile, convergent_key, encode_text
from tests.support.virtual_time import VirtualRuntime

SECRET = b"convergence"


@lru_cache(maxsize=8)
def noise(size: int, seed: int = 0) -> bytes:
    """That many bytes that no code makes shorter."""
    return random.Random(seed).randbytes(size)


@lru_cache(maxsize=8)
def encoded(data: bytes, k: int, n: int, segment_size: int) -> EncodedFile:
    """A file's shares as a put makes them."""
    geometry = Geometry.of_file(len(data), k, n, segment_size)
    return encode_text(data, convergent_key(data, SECRET, geometry), geometry, batch_count=64)


class MemorySource:
    """Bytes in memory as the source of a put; `left`: how many remain by the time they are read."""

    def __init__(self, data: bytes, left: int | None = None) -> None:
        self.data = data
        self.left = len(data) if left is None else left
        self.read_count = 0

    @property
    def size(self) -> int:
        """What the caller was promised."""
        return len(self.data)

    async def read_at(self, offset: int, length: int) -> Buffer:
        """As much of it as is left."""
        self.read_count += 1
        return self.data[: self.left][offset : offset + length]


class MemorySink:
    """Collects the output of a get; takes delay_s for each write, and fails after `room` bytes."""

    def __init__(self, runtime: Runtime | None = None, delay_s: float = 0.0, room: float = float("inf")) -> None:
        self.data = bytearray()
        self.write_sizes: list[int] = []
        self._runtime = runtime
        self._delay_s = delay_s
        self._room = room

    async def write(self, data: Buffer) -> None:
        """Take it."""
        if self._runtime is not None:
            await self._runtime.clock.sleep(self._delay_s)
        if len(self.data) + len(data) > self._room:
            raise GridError("the disk is full")
        self.write_sizes.append(len(data))
        self.data += data


class ScriptedGrid:
    """Servers s0, s1, ... and a runtime, to be used from outside of the event loop."""

    def __init__(self, server_count: int = 10, *, runtime: Runtime | None = None) -> None:
        self.virtual = VirtualRuntime()
        self.runtime: Runtime = runtime or self.virtual
        self.servers = [ScriptedServer(f"s{index}", self.virtual.clock) for index in range(server_count)]
        self.events: list[Event] = []
        self.grid = grid_of(self.servers, self.runtime)

    @property
    def now(self) -> float:
        """Virtual seconds since the beginning."""
        return self.virtual.clock.now()

    def store(
        self,
        data: bytes,
        *,
        k: int = 3,
        n: int = 10,
        segment_size: int = 2**20,
        holdings: Mapping[int, Iterable[int]] | None = None,
    ) -> EncodedFile:
        """Encode a file and lay its shares where `holdings` (server index to share numbers) says, else round robin."""
        file = encoded(data, k, n, segment_size)
        self.lay(file, holdings)
        return file

    def lay(self, file: EncodedFile, holdings: Mapping[int, Iterable[int]] | None = None) -> None:
        """Put the shares of a file onto the servers."""
        if holdings is None:
            count = len(self.servers)
            holdings = {index: range(index, len(file.shares), count) for index in range(count)}
        for index, numbers in holdings.items():
            held = self.servers[index].shares.setdefault(file.cap.storage_index, {})
            for number in numbers:
                held[number] = file.shares[number]

    def script(self, index: int, **faults: object) -> Script:
        """Let a server misbehave from now on; counts of calls start over."""
        server = self.servers[index]
        server.calls.clear()
        server.script = Script(**faults)  # type: ignore[arg-type]
        return server.script

    def put(
        self,
        data: bytes | MemorySource,
        *,
        encoding: Encoding | None = None,
        convergence: bytes | None = SECRET,
        servers: Sequence[StorageServer] | None = None,
        key: bytes | None = None,
    ) -> PutResult:
        """Put a file."""
        return self.virtual.run(
            put(
                MemorySource(data) if isinstance(data, bytes) else data,
                evolve(
                    self.grid,
                    servers=self.servers if servers is None else servers,
                    encoding=encoding or Encoding(),
                    convergence=convergence,
                    observer=self.events.append,
                ),
                key=key,
            )
        )

    def put_together(
        self, contents: Sequence[bytes | MemorySource], *, encoding: Encoding, key: bytes | None = None
    ) -> list[PutResult | GridError]:
        """Put files at the same time; returns what each put returned or raised."""
        grid = evolve(self.grid, servers=self.servers, encoding=encoding, convergence=SECRET)

        async def outcome(data: bytes | MemorySource) -> PutResult | GridError:
            try:
                return await put(MemorySource(data) if isinstance(data, bytes) else data, grid, key=key)
            except GridError as error:
                return error

        async def run() -> list[PutResult | GridError]:
            return await gatherResults([Deferred.fromCoroutine(outcome(data)) for data in contents])

        return self.virtual.run(run())

    def open(self, cap: ChkCap | ChkVerifyCap | LitCap) -> ImmutableFile:
        """A file on all of the servers."""
        return ImmutableFile(cap, self.grid)

    def read(
        self,
        file: ImmutableFile,
        offset: int = 0,
        length: int | None = None,
        *,
        sink: MemorySink | None = None,
        observer: Observer = ignore_events,
    ) -> tuple[bytes, GetResult]:
        """A range of an open file, and the read's statistics."""
        sink = sink or MemorySink()
        result = self.virtual.run(file.read(sink, offset, length, observer))
        return bytes(sink.data), result

    def get(self, cap: ChkCap | ChkVerifyCap | LitCap, offset: int = 0, length: int | None = None) -> bytes:
        """A range of a file."""
        return self.read(self.open(cap), offset, length)[0]

    def check(
        self, cap: ChkCap | ChkVerifyCap | LitCap, *, verify: bool = True, leases: bool = False, happy: int = 0
    ) -> CheckResult:
        """The health of a file."""
        return self.virtual.run(
            check(cap, evolve(self.grid, encoding=Encoding(happy=happy)), verify=verify, add_lease=leases)
        )

    def repair(self, cap: ChkCap | ChkVerifyCap | LitCap, *, happy: int = 0) -> RepairResult:
        """Repair a file."""
        return self.virtual.run(repair(cap, evolve(self.grid, encoding=Encoding(happy=happy))))

    def shares(self, storage_index: bytes) -> dict[int, set[bytes]]:
        """The bytes of every share that servers hold, by share number."""
        found: dict[int, set[bytes]] = {}
        for server in self.servers:
            for number, share in server.shares.get(storage_index, {}).items():
                found.setdefault(number, set()).add(share)
        return found

    def settle(self) -> None:
        """Let everything in progress finish."""
        self.virtual.settle()

    def debris(self) -> list[tuple[str, int]]:
        """Shares that are neither finished nor aborted."""
        return [(server.identity.server_id, number) for server in self.servers for _, number in server.incoming]
