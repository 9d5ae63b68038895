"""An in-memory storage server for mutable slots whose behavior a test scripts: slow, dead, silent, stale, lying.

Every scripted fault that occurs is counted in `fired`; every call and every byte is counted too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define
from twisted.internet.defer import Deferred

from grid.errors import BadWriteEnablerError, NoSpaceError
from grid.ports import (
    Buffer,
    Clock,
    Range,
    ShareNumber,
    SlotAnswer,
    SlotSecrets,
    StorageIndex,
    TestWrite,
)
from tests.support.scripted_storage import Behaviour, ScriptedStorage

SLOW_S = 0.75
"""What an answer takes that counts as a fault."""


@define(kw_only=True, eq=False)
class SlotScript(Behaviour):
    """What else goes wrong with slots.

    write_delay_s: what a write takes, if not delay_s. lost_answers: writes are done, and their answers never come. frozen:
    reads see the shares as they were when this was set (by freeze()). deaf: writes are said to be done and are not. full: writes
    are refused for want of room.
    """

    write_delay_s: float | None = None
    lost_answers: bool = False
    frozen: dict[bytes, dict[int, bytes]] | None = None
    deaf: bool = False
    full: bool = False


class SlotServer(ScriptedStorage):
    """One server; slots: storage index to share number to bytes."""

    def __init__(self, name: str, clock: Clock, script: SlotScript | None = None) -> None:
        super().__init__(name, clock)
        self.script = script or SlotScript()
        self.slots: dict[bytes, dict[int, bytearray]] = {}
        self.enablers: dict[bytes, bytes] = {}
        self.written_bytes = 0
        self.largest_write = 0

    def freeze(self) -> None:
        """From now on, tell of the shares as they are at this moment."""
        self.script.frozen = {index: {n: bytes(d) for n, d in slot.items()} for index, slot in self.slots.items()}

    @property
    def behaviour(self) -> Behaviour:
        return self.script

    async def _pause(self, delay_s: float | None) -> None:
        if (self.script.delay_s if delay_s is None else delay_s) >= SLOW_S:
            self.fired["slow" if delay_s is None else "slow to write"] += 1
        await super()._pause(delay_s)

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        await self._enter("read_slot")
        slot: Mapping[int, Buffer] = self.slots.get(storage_index, {})
        if self.script.frozen is not None:
            if self.script.frozen.get(storage_index, {}) != slot:
                self.fired["frozen"] += 1
            slot = self.script.frozen.get(storage_index, {})
        self.fired["unread"] += len(self.script.unread & slot.keys())
        return {
            ShareNumber(number): [
                self._cut(number, data, offset, size) for offset, size in ranges if number not in self.script.unread
            ]
            for number, data in slot.items()
            if not share_numbers or number in share_numbers
        }

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        await self._enter("test_and_write", self.script.write_delay_s)
        if self.script.full:
            self.fired["full"] += 1
            raise NoSpaceError(f"server {self.identity.server_id} refused with status 507: No space left on device")
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
