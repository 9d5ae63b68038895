"""The operations on one mutable file's shares: find, read, write, stream and verify, each the run of one plan.

It owns the servers, keys and tools of one capability. It keeps how fast servers answer, and nothing of the file except
what layout_cache.py remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from grid.crypto.rsa import PrivateKey
from grid.drive import drive, drive_until_settled
from grid.engine.grid import Grid
from grid.engine.lateness import ServerLoads
from grid.errors import ConflictError, NotEnoughSharesError
from grid.mutable.perform import Performer
from grid.mutable.read.audit_plan import AuditPlan, AuditReport
from grid.mutable.read.few_servers import Few, choose_few
from grid.mutable.read.layout_cache import KnownFiles, Speculate
from grid.mutable.read.map_plan import MapMode, MapPlan
from grid.mutable.read.newest import NewestSeen
from grid.mutable.read.read_plan import ReadPlan, ReadResult
from grid.mutable.read.refutations import Refutations
from grid.mutable.share.keys import FileKeys
from grid.mutable.share.prefix import MAX_SEQNUM, Prefix
from grid.mutable.share.requests import ReadBlocks, ReadFronts
from grid.mutable.share.versions import ShareLocation, VersionMap
from grid.mutable.write.goal import Goal, choose_goal
from grid.mutable.write.other_writers import Conflicts
from grid.mutable.write.row_plan import RowPlan, RowWants, ShareRows
from grid.mutable.write.stream_plan import Streamed, StreamJob, StreamPlan
from grid.mutable.write.write_job import WriteJob, Written
from grid.mutable.write.write_plan import WRITE_KIND, WritePlan
from grid.placement.order import permute
from grid.ports import (
    Range,
    ServerId,
    ShareNumber,
    Sink,
    Source,
    StorageServer,
)
from grid.sinks import BytesSink, FrozenBytesSink
from grid.values import field, frozen

T = TypeVar("T")


@frozen(kw_only=True, eq=False)
class Session:
    """servers: in the file's order. grid: its encoding says how many servers a safe write needs."""

    keys: FileKeys
    servers: Sequence[StorageServer] = field(repr=False)
    grid: Grid
    loads: ServerLoads = field(repr=False)
    conflicts: Conflicts = field(factory=Conflicts, repr=False)
    refutations: Refutations = field(factory=Refutations, repr=False)

    @classmethod
    def open(cls, keys: FileKeys, grid: Grid) -> Session:
        """Open a session with a capability's keys and the servers that the grid has now."""
        ordered = permute(grid.servers, keys.storage_index)
        return cls(keys=keys, servers=ordered, grid=grid, loads=ServerLoads(memory=grid.memory))

    @property
    def server_ids(self) -> list[ServerId]:
        """All servers, in the file's order."""
        return [server.identity.server_id for server in self.servers]

    @property
    def permitted(self) -> list[ServerId]:
        """The servers that may receive new shares now, those in doubt last. [spec wire 11]"""
        now = self.grid.runtime.clock.unix_time()
        permitted = [s.identity.server_id for s in self.servers if s.identity.upload_permit_expires > now]
        return self.loads.memory.trusted_first(permitted, WRITE_KIND)

    @property
    def doubtful(self) -> frozenset[ServerId]:
        """The servers that may not answer a write."""
        memory = self.loads.memory
        return frozenset(server_id for server_id in self.server_ids if memory.is_doubtful(server_id, WRITE_KIND))

    def goal_for(self, found: VersionMap, n: int) -> Goal:
        """Where the shares of a new version go."""
        return choose_goal(found, n, self.permitted, self.doubtful, min(self.grid.encoding.happy, n))

    async def find(
        self,
        mode: MapMode,
        *,
        add_lease: bool = False,
        private_key: PrivateKey | None = None,
        speculate: Speculate | None = None,
        anew: bool = False,
        patiently: bool = False,
        few: Few | None = None,
        on_rest: Callable[[VersionMap | None], None] | None = None,
    ) -> VersionMap:
        """Find what is where now. Never fails, however little is found.

        speculate: what to request early if the file is known. anew: include shares that reads have refuted.
        patiently: wait for every server as if nothing could be read without it. few: the servers of few_servers.py.
        on_rest: return the map as soon as it is good enough for a read. `on_rest` is called once no server is waited for, with the
        whole map if the first one was not whole, otherwise with None.
        """
        if anew:
            self.refutations.clear()
        storage_index, newest = self.keys.storage_index, self.grid.remembered.of(NewestSeen)
        known = self.grid.remembered.of(KnownFiles).get(storage_index)
        floor = newest.floor(storage_index, self.grid.runtime.clock.now())
        plan = MapPlan(
            self.server_ids,
            self.keys,
            self.grid.encoding,
            mode,
            self.loads,
            add_lease=add_lease,
            private_key=private_key,
            speculation=speculate(known) if known is not None and speculate is not None else None,
            floor=MAX_SEQNUM if patiently else floor,
            few=few,
        )

        def noted(found: VersionMap) -> VersionMap:
            found = self.conflicts.apply(self.without_refuted(found))
            return newest.note(storage_index, found, floor, self.grid.runtime.clock.now())

        if on_rest is None:
            return noted(await drive(plan, self._performer(), self.grid))

        def take_rest(found: VersionMap | None) -> None:
            on_rest(noted(found) if found is not None else None)

        return noted(await drive_until_settled(plan, self._performer(), self.grid, take_rest))

    def few(self, found: VersionMap) -> Few | None:
        """The servers that are enough to see whether the best version of a remembered map is still the newest; None if all are needed."""
        newest, storage_index = self.grid.remembered.of(NewestSeen), self.keys.storage_index
        return choose_few(
            found.knowing(newest.seqnum(storage_index)),
            self.grid.encoding.happy,
            lambda server_id: self.loads.is_doubtful(server_id, ReadFronts),
            lambda server_id: self.loads.of(server_id).latency.latency_s,
            self.grid.runtime.clock.now(),
            newest.mapped_at(storage_index),
        )

    def without_refuted(self, found: VersionMap) -> VersionMap:
        """The map without shares that reads have shown to be false or unreachable."""
        return self.refutations.apply(found, self.grid.runtime.clock.now())

    def note(self, found: VersionMap) -> None:
        """Remember the file as it is now."""
        self.grid.remembered.of(NewestSeen).note(self.keys.storage_index, found, 0, self.grid.runtime.clock.now())
        self.grid.remembered.of(KnownFiles).note(self.keys.storage_index, found, self._is_slow)

    def _is_slow(self, server_id: ServerId) -> bool:
        doubtful = any(self.loads.is_doubtful(server_id, kind) for kind in (ReadFronts, ReadBlocks))
        return doubtful or self.loads.of(server_id).is_slow

    async def read(
        self, found: VersionMap, prefix: Prefix, sink: Sink, offset: int, length: int, *, raw: bool = False
    ) -> ReadResult:
        """Write bytes of a version to the sink; see ReadPlan. Does nothing if length is 0.

        Shares that prove false are not in later maps.
        """
        if not length:
            return ReadResult(size=0, bad={})
        plan = ReadPlan(prefix, found.shares_of(prefix), self.loads, None if raw else self.keys, offset, length)
        try:
            return await drive(plan, self._performer(sink=sink), self.grid)
        except (ConflictError, NotEnoughSharesError):
            self.refutations.note(prefix, plan.refuted, plan.lost, self.grid.runtime.clock.now())
            raise

    async def gather(
        self, found: VersionMap, prefix: Prefix, offset: int, length: int, *, raw: bool = False
    ) -> bytearray:
        """Read bytes of a version into memory."""
        sink = BytesSink()
        await self.read(found, prefix, sink, offset, length, raw=raw)
        return sink.data

    async def contents(self, found: VersionMap, prefix: Prefix) -> bytes:
        """Read all of a version."""
        sink = FrozenBytesSink()
        await self.read(found, prefix, sink, 0, prefix.size)
        return sink.take()

    async def fetch_rows(
        self, found: VersionMap, prefix: Prefix, wants: RowWants, besides: Mapping[ShareLocation, Sequence[Range]]
    ) -> dict[ShareNumber, ShareRows]:
        """Fetch proven hashes of every share of a version; see RowPlan."""
        plan = RowPlan(prefix, found.shares_of(prefix), wants, self.loads, besides)
        return await drive(plan, self._performer(), self.grid)

    async def write(self, job: WriteJob, goal: Goal) -> Written:
        """Write a version to its locations; see WritePlan."""
        plan = WritePlan(job, goal, self.keys, self.loads.memory)
        try:
            written = await drive(plan, self._performer(), self.grid)
        except ConflictError as error:
            highest = max((seqnum for seqnum, _ in error.shown.values()), default=0)
            self.grid.remembered.of(NewestSeen).learn(self.keys.storage_index, highest)
            # A version that is stored again is not this writer's.
            ours = None if error.ours == job.base else error.ours
            self.conflicts.note(error.shown, ours, job.base)
            raise
        self.refutations.forget(written.locations)
        return written

    async def stream(self, job: StreamJob, goal: Goal, source: Source) -> Streamed:
        """Write the blocks of a large version to its locations; see StreamPlan."""
        plan = StreamPlan(job, goal, self.loads.memory)
        return await drive(plan, self._performer(source=source), self.grid)

    async def audit(self, found: VersionMap, prefix: Prefix) -> AuditReport:
        """Verify every byte of every share of a version; see AuditPlan."""
        plan = AuditPlan(found, prefix, self.keys, self.loads)
        return await drive(plan, self._performer(), self.grid)

    async def compute(self, function: Callable[..., T], *arguments: object) -> T:
        """Run the function on the processor pool and return its result."""
        return await self.grid.runtime.cpu.run(function, *arguments)

    def _performer(self, sink: Sink | None = None, source: Source | None = None) -> Performer:
        return Performer(self.servers, self.keys, self.grid.runtime, leases=self.grid.leases, sink=sink, source=source)
