"""The common part of all scripted servers: late, lost and wrong answers, and counts.

A server in memory with two faces: tests.support.scripted_server keeps immutable shares, tests.support.scripted_slots keeps
slots. Either refuses what the other one does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from attrs import define, field
from twisted.internet.defer import Deferred

from grid.errors import PeerGoneError, PeerRefusedError
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


@define(kw_only=True, eq=False)
class Behaviour:
    """What goes wrong with either kind of share, and when. Counts are of calls to this server, from 0.

    delay_s: every answer takes as long. dead_from: calls from this one on fail. silent_from: calls from this one on
    are never answered. only: the methods that these two and failure apply to (none: all). lost, broken: calls that are
    never answered, or fail, whatever becomes of the others. failure: what calls from dead_from on raise instead of
    PeerGoneError. corrupt: (share number, byte offset) -> xor mask, in what is read. short: share number -> length it is
    cut to when read. unread: shares that answers name, and that the disk does not give.
    """

    delay_s: float = 0.01
    dead_from: int | None = None
    silent_from: int | None = None
    only: frozenset[str] = frozenset()
    lost: frozenset[int] = frozenset()
    broken: frozenset[int] = frozenset()
    failure: Callable[[], Exception] | None = None
    corrupt: dict[tuple[int, int], int] = field(factory=dict)
    short: dict[int, int] = field(factory=dict)
    unread: frozenset[int] = frozenset()


class ScriptedStorage(ABC):
    """A server that keeps nothing, and answers as its script says. Every fault that occurs is counted in `fired`.

    jitter: makes a factor for the time of each answer.
    """

    def __init__(self, name: str, clock: Clock) -> None:
        seed = name.encode().ljust(20, b"\0")[:20]
        self.identity = ServerIdentity(server_id=ServerId(name), permutation_seed=seed, lease_seed=seed)
        self.advisories: list[tuple[int, str]] = []
        self.leases: list[bytes] = []
        self.calls: list[str] = []
        self.fired: Counter[str] = Counter()
        self.read_bytes = 0
        self.hung: list[Deferred[None]] = []
        self.jitter: Callable[[], float] = lambda: 1.0
        self._clock = clock

    @property
    @abstractmethod
    def behaviour(self) -> Behaviour:
        """The part of the script that is common to both faces."""

    async def _enter(self, method: str, delay_s: float | None = None) -> None:
        """Count the call; return when it is due, or raise, or do neither. delay_s: instead of the script's."""
        index = len(self.calls)
        self.calls.append(method)
        script = self.behaviour
        applies = not script.only or method in script.only
        silent = applies and script.silent_from is not None and index >= script.silent_from
        if silent or index in script.lost:
            self.fired["silent" if silent else "lost"] += 1
            silence: Deferred[None] = Deferred()
            self.hung.append(silence)
            await silence
        await self._pause(delay_s)
        dead = applies and script.dead_from is not None and index >= script.dead_from
        if dead or index in script.broken:
            self.fired["dead" if dead else "broken"] += 1
            if script.failure is not None:
                raise script.failure()
            raise PeerGoneError(f"server {self.identity.server_id} is gone")

    async def _pause(self, delay_s: float | None) -> None:
        await self._clock.sleep((self.behaviour.delay_s if delay_s is None else delay_s) * self.jitter())

    def _cut(self, number: int, data: Buffer, offset: int, size: int) -> bytes:
        """A range of a share as the script has it read."""
        script = self.behaviour
        limit = script.short.get(number, len(data))
        if offset + size > limit < len(data):
            self.fired["short"] += 1
        piece = bytearray(data[offset : min(offset + size, limit)])
        for (share, position), mask in script.corrupt.items():
            if share == number and offset <= position < offset + len(piece):
                piece[position - offset] ^= mask
                self.fired["corrupt"] += 1
        self.read_bytes += len(piece)
        return bytes(piece)

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

    def asks_for_room(self, size: int) -> bool:
        return False

    async def get_version(self) -> ServerVersion:
        raise self._refusal()

    async def find_shares(
        self, storage_index: StorageIndex, ranges: Sequence[Range] = ()
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        raise self._refusal()

    async def read_shares(
        self, storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        raise self._refusal()

    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        raise self._refusal()

    async def store_shares(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        raise self._refusal()

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        raise self._refusal()

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        raise self._refusal()

    def _refusal(self) -> PeerRefusedError:
        return PeerRefusedError(f"server {self.identity.server_id} keeps no shares of that kind", kind="KeyError")
