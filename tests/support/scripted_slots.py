"""A storage server in memory for mutable slots, whose behaviour a test scripts: slow, dead, silent, stale, lying.

Every fault that is scripted and comes to pass is counted in `fired`; every call and every byte is counted too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import define, field
from twisted.internet.defer import Deferred

from grid.errors import BadWriteEnablerError, PeerGoneError, PeerRefusedError
from grid.ports import (
    Allocation,
    Buffer,
    Clock,
    LeaseSecrets,
    NewShares,
    Range,
    ServerId,
    ServerIdentity,
    ServerVersion,
    ShareKind,
    ShareNumber,
    SlotAnswer,
    SlotSecrets,
    StorageIndex,
    StoreAnswer,
    TestWrite,
)

SLOW_S = 0.75
"""What an answer takes that counts as a fault."""


@define(kw_only=True, eq=False)
class SlotScript:
    """What goes wrong, and when. Counts are of calls to this server, from 0.

    delay_s: every answer takes as long; write_delay_s: a write does, if given. dead_from, silent_from: calls from this
    one on fail, or are never answered. lost_answers: writes are done, and their answers never come. corrupt: (share
    number, byte offset) -> xor mask, in what is read. short: share number -> length it is cut to when read. frozen:
    reads see the shares as they were when this was set (by freeze()). deaf: writes are said to be done and are not.
    only: the methods that dead_from and silent_from apply to (none: all).
    """

    delay_s: float = 0.01
    write_delay_s: float | None = None
    dead_from: int | None = None
    silent_from: int | None = None
    lost_answers: bool = False
    corrupt: dict[tuple[int, int], int] = field(factory=dict)
    short: dict[int, int] = field(factory=dict)
    frozen: dict[bytes, dict[int, bytes]] | None = None
    deaf: bool = False
    only: frozenset[str] = frozenset()


class SlotServer:
    """One server; slots: storage index to share number to bytes."""

    def __init__(self, name: str, clock: Clock, script: SlotScript | None = None) -> None:
        seed = name.encode().ljust(20, b"\0")[:20]
        self.identity = ServerIdentity(server_id=ServerId(name), permutation_seed=seed, lease_seed=seed)
        self.script = script or SlotScript()
        self.slots: dict[bytes, dict[int, bytearray]] = {}
        self.enablers: dict[bytes, bytes] = {}
        self.advisories: list[tuple[int, str]] = []
        self.leases: list[bytes] = []
        self.calls: list[str] = []
        self.fired: Counter[str] = Counter()
        self.read_bytes = 0
        self.written_bytes = 0
        self.largest_write = 0
        self._clock = clock

    def freeze(self) -> None:
        """From now on, tell of the shares as they are at this moment."""
        self.script.frozen = {index: {n: bytes(d) for n, d in slot.items()} for index, slot in self.slots.items()}

    async def _enter(self, method: str, delay_s: float | None = None) -> None:
        index = len(self.calls)
        self.calls.append(method)
        script = self.script
        applies = not script.only or method in script.only
        if applies and script.silent_from is not None and index >= script.silent_from:
            self.fired["silent"] += 1
            await Deferred()
        delay = script.delay_s if delay_s is None else delay_s
        if delay >= SLOW_S:
            self.fired["slow to write" if delay_s is not None else "slow"] += 1
        await self._clock.sleep(delay)
        if applies and script.dead_from is not None and index >= script.dead_from:
            self.fired["dead"] += 1
            raise PeerGoneError(f"server {self.identity.server_id} is gone")

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        await self._enter("read_slot")
        slot: Mapping[int, Buffer] = self.slots.get(storage_index, {})
        if self.script.frozen is not None:
            if self.script.frozen.get(storage_index, {}) != slot:
                self.fired["frozen"] += 1
            slot = self.script.frozen.get(storage_index, {})
        return {
            ShareNumber(number): [self._cut(number, data, offset, size) for offset, size in ranges]
            for number, data in slot.items()
            if not share_numbers or number in share_numbers
        }

    def _cut(self, number: int, data: Buffer, offset: int, size: int) -> bytes:
        limit = self.script.short.get(number, len(data))
        if offset + size > limit < len(data):
            self.fired["short"] += 1
        piece = bytearray(data[offset : min(offset + size, limit)])
        for (share, position), mask in self.script.corrupt.items():
            if share == number and offset <= position < offset + len(piece):
                piece[position - offset] ^= mask
                self.fired["corrupt"] += 1
        self.read_bytes += len(piece)
        return bytes(piece)

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        await self._enter("test_and_write", self.script.write_delay_s)
        slot = self.slots.setdefault(storage_index, {})
        if slot and self.enablers[storage_index] != secrets.write_enabler:
            raise BadWriteEnablerError("the write enabler is another one")
        self.enablers[storage_index] = secrets.write_enabler
        data = {ShareNumber(n): [bytes(d[o : o + s]) for o, s in ranges] for n, d in slot.items()}
        passed = all(
            bytes(slot.get(number, b"")[offset : offset + length]) == specimen
            for number, write in writes.items()
            for offset, length, specimen in write.tests
        )
        if passed and self.script.deaf:
            self.fired["deaf"] += 1
        elif passed:
            self.leases.append(secrets.lease.renew)
            for number, write in writes.items():
                self._apply(slot, number, write)
        if self.script.lost_answers:
            self.fired["lost_answers"] += 1
            await Deferred()
        return SlotAnswer(passed=passed, data=data)

    def _apply(self, slot: dict[int, bytearray], number: int, write: TestWrite) -> None:
        if write.new_length == 0:
            slot.pop(number, None)
            return
        share = slot.setdefault(number, bytearray())
        size = sum(len(data) for _, data in write.writes)
        self.written_bytes += size
        self.largest_write = max(self.largest_write, size)
        for offset, data in write.writes:
            if offset > len(share):
                share += bytes(offset - len(share))
            share[offset : offset + len(data)] = data
        if write.new_length is not None:
            del share[write.new_length :]

    async def add_lease(self, storage_index: StorageIndex, secrets: LeaseSecrets) -> None:
        await self._enter("add_lease")
        self.leases.append(secrets.renew)

    async def advise_corrupt(
        self, kind: ShareKind, storage_index: StorageIndex, share_number: ShareNumber, reason: str
    ) -> None:
        await self._enter("advise_corrupt")
        self.advisories.append((share_number, reason))

    @property
    def known_version(self) -> ServerVersion | None:
        return None

    async def store_shares(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        raise PeerRefusedError("not scripted", kind="KeyError")

    async def get_version(self) -> ServerVersion:
        raise PeerRefusedError("not scripted", kind="KeyError")

    async def find_shares(self, *_: object) -> Mapping[ShareNumber, Sequence[Buffer]]:
        raise PeerRefusedError("not scripted", kind="KeyError")

    async def read_shares(self, *_: object) -> Mapping[ShareNumber, Sequence[Buffer]]:
        raise PeerRefusedError("not scripted", kind="KeyError")

    async def allocate(self, *_: object) -> Allocation:
        raise PeerRefusedError("not scripted", kind="KeyError")
