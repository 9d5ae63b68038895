"""An in-memory storage server that lies about writes: it stores nothing, and claims otherwise."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping, Sequence

from grid.ports import Buffer, Clock, Range, ShareNumber, SlotAnswer, SlotSecrets, StorageIndex, TestWrite
from tests.support.scripted_slots import SlotServer

Fronts = dict[ShareNumber, bytes]
WriteLie = Callable[["WriteLiar", Sequence[int]], tuple[bool, Fronts]]
"""(the server, the numbers it was to write) -> whether it says that the tests held, and what it shows of which numbers."""


class WriteLiar(SlotServer):
    """Stores nothing of what it is sent, and claims otherwise.

    shares: what it has shown once, and shows when it is asked again. remembered: honest shares of an earlier moment.
    """

    def __init__(self, name: str, clock: Clock) -> None:
        super().__init__(name, clock)
        self.write_lie: WriteLie | None = None
        self.shown: dict[int, bytes] = {}
        self.remembered: dict[int, bytes] = {}
        self.lies = 0

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        if self.write_lie is None:
            return await super().test_and_write(storage_index, secrets, writes, ranges)
        await self._enter("test_and_write")
        self.lies += 1
        passed, fronts = self.write_lie(self, sorted(writes))
        data = {number: [front[offset : offset + size] for offset, size in ranges] for number, front in fronts.items()}
        return SlotAnswer(passed=passed, data=data)

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        if self.write_lie is None or not self.shown or not share_numbers:
            return await super().read_slot(storage_index, share_numbers, ranges)
        await self._enter("read_slot")
        return {
            number: [self.shown[number][offset : offset + size] for offset, size in ranges]
            for number in share_numbers
            if number in self.shown
        }


def deny(front: Callable[[WriteLiar, int], bytes], *, everywhere: bool = False, passed: bool = False) -> WriteLie:
    """Show that front of every number that was to be written, or of ten numbers."""

    def lie(server: WriteLiar, numbers: Sequence[int]) -> tuple[bool, Fronts]:
        shown = range(10) if everywhere else numbers
        return passed, {ShareNumber(number): front(server, number) for number in shown}

    return lie


def noise(server: WriteLiar, number: int) -> bytes:
    return random.Random(f"{server.identity.server_id}{number}{server.lies}").randbytes(75)


def high(server: WriteLiar, number: int) -> bytes:
    return struct.pack(">BQ", 0, 2**63 + 7) + noise(server, number)[:66]


def highest(server: WriteLiar, number: int) -> bytes:
    return struct.pack(">BQ", 1, 2**64 - 1) + noise(server, number)[:66]


def later(server: WriteLiar, number: int) -> bytes:
    """An honest share but for its sequence number, which nobody has signed."""
    share = bytearray(server.remembered.get(number) or next(iter(server.remembered.values()), bytes(75)))
    share[8] += 9
    server.shown[number] = bytes(share)
    return bytes(share[:75])


def old(server: WriteLiar, number: int) -> bytes:
    share = server.remembered.get(number) or next(iter(server.remembered.values()), b"")
    server.shown[number] = share
    return share[:75]


WRITE_LIES: dict[str, WriteLie] = {
    "unknown version": deny(lambda server, number: b"\x07" + noise(server, number)[:74]),
    "random": deny(noise),
    "one byte": deny(lambda server, number: b"\x00"),
    "nothing": deny(lambda server, number: b""),
    "unfinished": deny(lambda server, number: b"\xff" + noise(server, number)[:74]),
    "seqnum of 2^63": deny(high),
    "largest seqnum": deny(highest),
    "later seqnum": deny(later),
    "old version": deny(old),
    "no shares at all": lambda server, numbers: (False, {}),
    "random under ten numbers": deny(noise, everywhere=True),
    "later seqnum under ten numbers": deny(later, everywhere=True),
    "passed, random under ten numbers": deny(noise, everywhere=True, passed=True),
    "passed, seqnum of 2^63 under ten numbers": deny(high, everywhere=True, passed=True),
    "passed, later seqnum under ten numbers": deny(later, everywhere=True, passed=True),
    "passed, old version under ten numbers": deny(old, everywhere=True, passed=True),
    "passed, one byte": deny(lambda server, number: b"\x01", everywhere=True, passed=True),
}

UNNOTICED = {"passed, random under ten numbers", "passed, old version under ten numbers", "passed, one byte"}
"""Lies on which nothing hangs: the share is not stored, as a server can always do, and what is shown is no newer version."""
