"""An in-memory storage server whose behavior a test scripts: slow, dead, silent, full, lying, forgetful.

It keeps immutable shares only. Every scripted fault that occurs is counted in `fired`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from attrs import define, field
from twisted.internet.defer import Deferred

from grid.errors import ConflictingWriteError, DataTooLargeError, PeerRefusedError
from grid.ports import (
    Allocation,
    Buffer,
    Clock,
    LeaseSecrets,
    NewShares,
    Range,
    ServerVersion,
    ShareNumber,
    ShareWrite,
    StorageIndex,
    StoreAnswer,
)
from grid.under_way import WritesUnderWay
from tests.support.scripted_storage import Behaviour, ScriptedStorage


@define(kw_only=True, eq=False)
class Script(Behaviour):
    """What else goes wrong with immutable shares.

    full: allocations are refused though room is advertised. read_only: no room is advertised. room: bytes that are. forget: reads no longer find
    these shares. swap: share number -> the share whose bytes are given instead. rate: bytes a second that it sends, one
    answer after the other. claims: share numbers that it says it holds, of which it has nothing but noise.
    pieces: answers to reads have a piece too many, too few, or pieces with a byte too many.
    generous: shares allocated besides those asked for.
    known: it is known to have room before it is asked, and takes whole shares. by_steps: the client asks for room first.
    stalls_over: answers to reads with more bytes than this never come.
    """

    full: bool = False
    read_only: bool = False
    room: int = 2**40
    forget: frozenset[int] = frozenset()
    swap: dict[int, int] = field(factory=dict)
    rate: float | None = None
    claims: frozenset[int] = frozenset()
    pieces: Literal["right", "many", "few", "long"] = "right"
    generous: frozenset[int] = frozenset()
    known: bool = False
    by_steps: bool = False
    stalls_over: int | None = None


class ScriptedServer(ScriptedStorage):
    """One server; shares: storage index to share number to bytes."""

    def __init__(self, name: str, clock: Clock, script: Script | None = None) -> None:
        super().__init__(name, clock)
        self.script = script or Script()
        self.shares: dict[bytes, dict[int, bytes]] = {}
        self.incoming: dict[tuple[bytes, int], bytearray] = {}
        self.read_calls: list[dict[int, list[Range]]] = []
        self.busy_until = 0.0

    @property
    def behaviour(self) -> Behaviour:
        return self.script

    @property
    def known_version(self) -> ServerVersion | None:
        return self._version() if self.script.known else None

    def asks_for_room(self, size: int) -> bool:
        return self.script.by_steps

    async def get_version(self) -> ServerVersion:
        await self._enter("get_version")
        return self._version()

    def _version(self) -> ServerVersion:
        room = 0 if self.script.read_only else self.script.room
        if self.script.read_only:
            self.fired["read_only"] += 1
        return ServerVersion(
            application="scripted",
            maximum_immutable_share_size=room,
            maximum_mutable_share_size=2**40,
            available_space=room,
            batched_reads=True,
        )

    async def find_shares(
        self, storage_index: StorageIndex, ranges: Sequence[Range] = ()
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        await self._enter("find_shares")
        held = self.shares.get(storage_index, {})
        self.fired["claims"] += len(self.script.claims)
        return await self._send({n: self._pieces(storage_index, n, ranges) for n in [*held, *self.script.claims]})

    async def read_shares(
        self, storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        await self._enter("read_shares")
        held = self.shares.get(storage_index, {})
        self.read_calls.append({number: list(ranges) for number, ranges in wants.items()})
        if self.script.forget & wants.keys():
            self.fired["forget"] += 1
        found = [n for n in wants if (n in held or n in self.script.claims) and n not in self.script.forget]
        return await self._send({n: self._pieces(storage_index, n, wants[ShareNumber(n)]) for n in found})

    async def _send(self, answer: dict[int, list[Buffer]]) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """The answer, once it has gone through the line."""
        size = sum(len(piece) for pieces in answer.values() for piece in pieces)
        if self.script.stalls_over is not None and size > self.script.stalls_over:
            self.fired["stalled"] += 1
            self.hung.append(Deferred())
            await self.hung[-1]
        if self.script.rate is not None:
            self.busy_until = max(self._clock.now(), self.busy_until) + size / self.script.rate * self.jitter()
            self.fired["slow"] += 1
            await self._clock.sleep(self.busy_until - self._clock.now())
        return {ShareNumber(number): pieces for number, pieces in answer.items()}

    def _pieces(self, storage_index: bytes, number: int, ranges: Sequence[Range]) -> list[Buffer]:
        if number in self.script.unread:
            self.fired["unread"] += bool(ranges)
            return []
        pieces: list[Buffer] = [self._read(storage_index, number, offset, size) for offset, size in ranges]
        if self.script.pieces != "right" and pieces:
            self.fired["pieces"] += 1
        match self.script.pieces:
            case "many":
                pieces.append(b"one too many")
            case "few":
                pieces = pieces[:-1]
            case "long":
                pieces = [bytes(piece) + b"!" for piece in pieces]
            case "right":
                pass
        return pieces

    def _read(self, storage_index: bytes, number: int, offset: int, size: int) -> bytes:
        script = self.script
        given = script.swap.get(number, number)
        if given != number:
            self.fired["swap"] += 1
        data = self.shares.get(storage_index, {}).get(given, b"noise" * 100)
        return self._cut(number, data, offset, size)

    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        await self._enter("allocate")
        held = frozenset(ShareNumber(number) for number in self.shares.get(storage_index, {}))
        self.leases.append(secrets.renew)
        taken: set[ShareNumber] = set()
        if self.script.full or self.script.read_only:
            self.fired["full"] += bool(share_numbers)
        else:
            self.fired["generous"] += bool(self.script.generous)
            offered = (share_numbers | {ShareNumber(n) for n in self.script.generous}) - held
            taken = {n for n in offered if (storage_index, n) not in self.incoming}
        for number in taken:
            self.incoming[storage_index, number] = bytearray(share_size)
        return Allocation(already=held, upload=ScriptedUpload(self, storage_index, frozenset(taken)))

    async def store_shares(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        await self._enter("store_shares")
        answers = []
        for new in stores:
            held = self.shares.setdefault(new.storage_index, {})
            already = frozenset(map(ShareNumber, held))
            self.leases.append(new.secrets.renew)
            unfinished = any((new.storage_index, number) in self.incoming for number in new.shares)
            refused = self.script.full or self.script.read_only
            self.fired["full"] += refused
            stored = not (already or unfinished or refused)
            if stored:
                held.update({number: b"".join(pieces) for number, pieces in new.shares.items()})
            answers.append(StoreAnswer(already=already, stored=stored))
        return answers


class ScriptedUpload:
    """What a scripted server has allocated."""

    def __init__(self, server: ScriptedServer, storage_index: bytes, share_numbers: frozenset[ShareNumber]) -> None:
        self.share_numbers = share_numbers
        self._server = server
        self._index = storage_index
        self._written: dict[int, set[tuple[int, int]]] = {number: set() for number in share_numbers}
        self._under_way = WritesUnderWay()

    async def write(self, writes: Sequence[ShareWrite]) -> None:
        with self._under_way.counted({write.share_number for write in writes}):
            await self._server._enter("write")
            self._store(writes)

    async def finish(self, writes: Sequence[ShareWrite]) -> None:
        """Calls are carried out in the order in which they came, as on a connection."""
        await self._server._enter("finish")
        numbers = {write.share_number for write in writes}
        await self._under_way.stored(numbers)
        self._store(writes)
        self._finish(numbers)

    def _store(self, writes: Sequence[ShareWrite]) -> None:
        for write in writes:
            room = self._server.incoming.get((self._index, write.share_number))
            if room is None:
                raise PeerRefusedError("no such upload", kind="KeyError")
            data = b"".join(write.pieces)
            if write.offset + len(data) > len(room):
                raise DataTooLargeError("past the end")
            span = (write.offset, write.offset + len(data))
            for start, stop in self._written[write.share_number]:
                if start < span[1] and span[0] < stop:
                    raise ConflictingWriteError("written twice")
            self._written[write.share_number].add(span)
            room[write.offset : span[1]] = data

    async def close(self, share_numbers: Iterable[ShareNumber]) -> None:
        await self._server._enter("close")
        self._finish(share_numbers)

    def _finish(self, share_numbers: Iterable[ShareNumber]) -> None:
        for number in share_numbers:
            room = self._server.incoming.pop((self._index, number), None)
            if room is None:
                raise PeerRefusedError("no such upload", kind="KeyError")
            covered = sum(stop - start for start, stop in self._written[number])
            assert covered == len(room), f"share {number} closed with {covered} of {len(room)} bytes"
            self._server.shares.setdefault(self._index, {})[number] = bytes(room)

    async def abort(self, share_numbers: Iterable[ShareNumber] | None = None) -> None:
        await self._server._enter("abort")
        for number in self.share_numbers if share_numbers is None else share_numbers:
            self._server.incoming.pop((self._index, number), None)
