"""An in-memory storage server whose every call waits until a test answers it, fails it, or loses the answer.

It is a ScriptedServer, with more that can go wrong while a call is under way. What the server has said to be so is
kept in ledgers, to be compared with what a client makes of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from attrs import define, evolve
from twisted.internet.defer import CancelledError, Deferred

from grid.errors import DataTooLargeError, PeerGoneError, PeerRefusedError
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
    Timer,
)
from tests.support.scripted_server import ScriptedServer, ScriptedUpload

SLOW_S = 6.0
"""How long a slow server takes for every answer."""


@define(eq=False)
class Call:
    """A pending request. gate: fires when the server starts on it."""

    method: str
    gate: Deferred[None]
    timer: Timer | None = None


class SteppedServer(ScriptedServer):
    """most: calls of each method that were under way at once. most_written: bytes of more than one write, at once.

    moods: lasting faults. `slow` answers by itself; `stalls` and `dead` never answer and always fail.

    `refuses` fails allocations; `tiny` says that it has no room for a share of that size; `chokes` refuses what is
    written as too large; `claims`, `generous`, `full` and `read_only` are those of the script.
    """

    def __init__(self, name: str, clock: Clock) -> None:
        super().__init__(name, clock)
        self.moods: set[str] = set()
        self.waiting: list[Call] = []
        self.most: dict[str, int] = {}
        self.writing: list[int] = []
        self.most_written = 0
        self.granted: set[ShareNumber] = set()
        self.told: set[ShareNumber] = set()
        self.closed: set[ShareNumber] = set()
        self.aborted: set[ShareNumber] = set()
        self._answer_lost = False

    def spoil(self, mood: str, numbers: frozenset[int]) -> None:
        """Add a permanent fault; numbers: the shares that it lies about."""
        self.moods.add(mood)
        if mood in {"claims", "generous"}:
            setattr(self.script, mood, numbers)
        elif mood in {"full", "read_only"}:
            setattr(self.script, mood, True)
        elif mood == "dead":
            self.hang_up()

    def answer(self, call: Call, *, lost: bool = False) -> None:
        """Do what was asked; lost: then the connection breaks, and nobody gets the answer."""
        self._answer_lost = lost
        call.gate.callback(None)
        self._answer_lost = False

    def fail(self, call: Call, error: Exception) -> None:
        """Ignore what was asked; an upload that cannot be aborted is lost with its connection, sooner or later."""
        if call.method == "abort":
            self.incoming.clear()
        call.gate.errback(error)

    def hang_up(self) -> None:
        """The connection breaks: calls under way fail, and so do uploads, as far as they are not closed."""
        self.fired["hang up"] += bool(self.waiting)
        self.incoming.clear()
        for call in list(self.waiting):
            if call in self.waiting:
                self.fail(call, PeerGoneError("the connection was lost"))

    async def _enter(self, method: str, delay_s: float | None = None) -> None:
        self.calls.append(method)
        if "dead" in self.moods:
            self.fired["dead"] += 1
            raise PeerGoneError("dead")
        call = Call(method, Deferred())
        if "stalls" in self.moods:
            self.fired["stalls"] += 1
        elif "slow" in self.moods:
            self.fired["slow"] += 1
            call.timer = self._clock.call_later(SLOW_S, partial(self.answer, call))
        self.waiting.append(call)
        alike = sum(other.method == method for other in self.waiting)
        self.most[method] = max(alike, self.most.get(method, 0))
        try:
            await call.gate
        except CancelledError:
            self.fired["cancelled"] += 1
            raise
        finally:
            self.waiting.remove(call)
            if call.timer is not None:
                call.timer.cancel()

    def leave(self) -> None:
        """Raise if the answer is lost on its way."""
        if self._answer_lost:
            self.fired["answer lost"] += 1
            self.incoming.clear()
            raise PeerGoneError("the connection was lost before the answer came")

    async def get_version(self) -> ServerVersion:
        version = await super().get_version()
        self.leave()
        return version

    def _version(self) -> ServerVersion:
        version = super()._version()
        if "tiny" in self.moods:
            self.fired["tiny"] += 1
            version = evolve(version, maximum_immutable_share_size=10)
        return version

    async def find_shares(
        self, storage_index: StorageIndex, ranges: Sequence[Range] = ()
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        found = await super().find_shares(storage_index, ranges)
        self.leave()
        self.told |= found.keys()
        return found

    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        if "refuses" in self.moods:
            await self._enter("allocate")
            self.fired["refuses"] += 1
            raise PeerRefusedError("not today", kind="RuntimeError")
        allocation = await super().allocate(storage_index, secrets, share_numbers, share_size)
        self.leave()
        already = allocation.already | {ShareNumber(number) for number in self.script.claims}
        self.told |= already
        self.granted |= allocation.upload.share_numbers
        upload = SteppedUpload(self, storage_index, allocation.upload.share_numbers)
        return Allocation(already=already, upload=upload)

    async def store_shares(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        if "refuses" in self.moods:
            await self._enter("store_shares")
            self.fired["refuses"] += 1
            raise PeerRefusedError("not today", kind="RuntimeError")
        answers = await super().store_shares(stores)
        self.leave()
        if "chokes" in self.moods:
            self.fired["chokes"] += 1
            raise DataTooLargeError("more than there is room for")
        claimed = {ShareNumber(number) for number in self.script.claims}
        answers = [evolve(answer, already=answer.already | claimed) for answer in answers]
        for new, answer in zip(stores, answers, strict=True):
            self.told |= answer.already
            if answer.stored:
                self.fired["stored"] += 1
                self.closed |= new.shares.keys()
        return answers


class SteppedUpload(ScriptedUpload):
    """What a stepped server has allocated."""

    def __init__(self, server: SteppedServer, storage_index: bytes, share_numbers: frozenset[ShareNumber]) -> None:
        super().__init__(server, storage_index, share_numbers)
        self._stepped = server

    async def write(self, writes: Sequence[ShareWrite]) -> None:
        with self._measured(writes):
            await super().write(writes)
        self._left()

    async def finish(self, writes: Sequence[ShareWrite]) -> None:
        numbers = {write.share_number for write in writes}
        with self._measured(writes):
            await super().finish(writes)
        self._left()
        self._stepped.closed |= numbers

    @contextmanager
    def _measured(self, writes: Sequence[ShareWrite]) -> Iterator[None]:
        server, size = self._stepped, sum(write.size for write in writes)
        server.writing.append(size)
        if len(server.writing) > 1:
            server.most_written = max(server.most_written, sum(server.writing))
        try:
            yield
        finally:
            server.writing.remove(size)

    def _left(self) -> None:
        self._stepped.leave()
        if "chokes" in self._stepped.moods:
            self._stepped.fired["chokes"] += 1
            raise DataTooLargeError("more than was allocated")

    async def close(self, share_numbers: Iterable[ShareNumber]) -> None:
        numbers = set(share_numbers)
        await super().close(numbers)
        self._stepped.leave()
        self._stepped.closed |= numbers

    async def abort(self, share_numbers: Iterable[ShareNumber] | None = None) -> None:
        numbers = self.share_numbers if share_numbers is None else frozenset(share_numbers)
        self._stepped.aborted |= numbers
        try:
            await super().abort(numbers)
        except CancelledError:  # Nobody waits any more, but the message was sent.
            for number in numbers:
                self._stepped.incoming.pop((self._index, number), None)
            raise
