"""A storage server that can be reached in two ways as one StorageServer: by the better one, or else by the other.

Both ways prove the server's identity on their own, so that falling back gives up no part of that. The other way is tried as
soon as the preferred one fails, or has not connected within HEAD_START_S; while it serves, the preferred one is tried again
in the background. A call that may have been carried out is repeated only if it has the same effect twice.
[docs/decisions/0093-falling-back.md]

Cost: nothing but a look at a connection's state while the preferred way works.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from attrs import evolve, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from grid.errors import GridError, PeerError, PeerGoneError, PeerRefusedError, PeerTimeoutError, PeerUnreachableError
from grid.ports import (
    Allocation,
    Buffer,
    Clock,
    LeaseSecrets,
    NewShares,
    Range,
    ServerIdentity,
    ServerVersion,
    ShareKind,
    ShareNumber,
    ShareWrite,
    SlotAnswer,
    SlotSecrets,
    StorageIndex,
    StoreAnswer,
    TestWrite,
    Upload,
)
from grid.runtime import Tasks, is_cancellation
from grid.wire.headstart import HEAD_START_S, race
from grid.wire.preference import OTHER, PREFERRED, Preference
from grid.wire.status import ConnectionState, ConnectionStatus, RemoteServer
from grid.wire.storequeue import store_by_steps

T = TypeVar("T")

log = Logger()

SILENCE_S = 10.0
"""A call that was given up after so long without an answer is held against its way, as one would be that timed out."""

MOST_TRIES = 3
"""Of one call: on a connection, on a new one, and the other way."""


@frozen(kw_only=True)
class Way:
    """A transport: its name for users, and what makes the client that speaks it, when that is needed first."""

    name: str
    make: Callable[[], RemoteServer]


class FallbackServer:
    """The StorageServer that two ways lead to."""

    def __init__(self, identity: ServerIdentity, preferred: Way, other: Way, clock: Clock) -> None:
        """Opens nothing."""
        self._identity = identity
        self._where = f"server {identity.nickname or identity.server_id}"
        self._ways = (preferred, other)
        self._servers: dict[int, RemoteServer] = {}
        self._clock = clock
        self._preference = Preference()
        self._attempts = Tasks()
        self._is_racing = False
        self._waiters: list[Deferred[int]] = []
        self._trials = Tasks()
        self._since = clock.unix_time()

    def __repr__(self) -> str:
        preferred, other = self._ways
        return f"<FallbackServer {self._identity.server_id}: {preferred.name}, else {other.name}>"

    @property
    def identity(self) -> ServerIdentity:
        """Who it is; constant."""
        return self._identity

    @property
    def status(self) -> ConnectionStatus:
        """How the connection stands that is in use; without one, what went wrong both ways."""
        server = self._servers.get(self._preference.chosen)
        if server is None:
            return ConnectionStatus(state=ConnectionState.IDLE, since=self._since)
        status = server.status
        if status.state is not ConnectionState.CONNECTED:
            details = dict.fromkeys(each.status.detail for each in self._servers.values() if each.status.detail)
            return evolve(status, detail="; ".join(details))
        if self._preference.chosen == OTHER:
            return evolve(status, fallback=f"{self._ways[PREFERRED].name} does not work: {self._preference.reason}")
        return status

    @property
    def known_version(self) -> ServerVersion | None:
        """What the server said last, if it can be expected to answer at once."""
        server = self._servers.get(self._preference.chosen)
        return None if server is None or self._preference.doubt else server.known_version

    async def connect(self) -> None:
        """Return when connected one way or the other; PeerError if neither leads there."""
        await self._reach()

    def close(self) -> None:
        """Give up all connections and attempts."""
        self._attempts.cancel()
        self._trials.cancel()
        for server in self._servers.values():
            server.close()

    # Calls that may be repeated: they change nothing, or the same twice.

    async def get_version(self) -> ServerVersion:
        """What the server is and has now."""
        return await self._ask(lambda server: server.get_version())

    async def find_shares(
        self, storage_index: StorageIndex, ranges: Sequence[Range] = ()
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Every immutable share held, with those ranges of each."""
        return await self._ask(lambda server: server.find_shares(storage_index, ranges))

    async def read_shares(
        self, storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Ranges of immutable shares; shares not held are left out."""
        return await self._ask(lambda server: server.read_shares(storage_index, wants))

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Ranges of mutable shares; none named: all."""
        return await self._ask(lambda server: server.read_slot(storage_index, share_numbers, ranges))

    async def add_lease(self, storage_index: StorageIndex, secrets: LeaseSecrets) -> None:
        """Add or renew the lease on every share held."""
        await self._ask(lambda server: server.add_lease(storage_index, secrets))

    async def store_shares(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        """Store whole new shares; those that were stored by a message without an answer are held already for the next."""
        version = self._server(await self._connected()).known_version
        if version is None:
            return (await self._ask_once(lambda server: server.store_shares(stores)))[1]
        if version.batched_stores:
            return await self._ask(lambda server: server.store_shares(stores))
        return [await store_by_steps(self, each) for each in stores]

    # Calls that are made once, unless it is certain that the server did not hear of them.

    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        """Room for new shares, which come the way that the answer came."""
        way, allocation = await self._ask_once(
            lambda server: server.allocate(storage_index, secrets, share_numbers, share_size)
        )
        return evolve(allocation, upload=_Upload(allocation.upload, lambda make: self._watch(way, make)))

    async def advise_corrupt(
        self, kind: ShareKind, storage_index: StorageIndex, share_number: ShareNumber, reason: str
    ) -> None:
        """Tell the server that a share of its is bad."""
        await self._ask_once(lambda server: server.advise_corrupt(kind, storage_index, share_number, reason))

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        """Test, and if every test holds write, as one step."""
        _, answer = await self._ask_once(lambda server: server.test_and_write(storage_index, secrets, writes, ranges))
        return answer

    async def _ask(self, make: Callable[[RemoteServer], Awaitable[T]]) -> T:
        for _ in range(MOST_TRIES - 1):
            way = await self._reach()
            try:
                return await self._watch(way, lambda: make(self._server(way)))  # noqa: B023 - called before the next turn
            except PeerRefusedError:
                raise
            except PeerError:
                continue
        way = await self._reach()
        return await self._watch(way, lambda: make(self._server(way)))

    async def _ask_once(self, make: Callable[[RemoteServer], Awaitable[T]]) -> tuple[int, T]:
        for _ in range(MOST_TRIES - 1):
            way = await self._connected()
            try:
                return way, await self._watch(way, lambda: make(self._server(way)))  # noqa: B023 - as above
            except PeerUnreachableError:
                continue
        way = await self._connected()
        return way, await self._watch(way, lambda: make(self._server(way)))

    async def _connected(self) -> int:
        """As _reach, but where the connection has just been lost it is made again before anything is sent."""
        way = await self._reach()
        try:
            await self._server(way).connect()
        except PeerError:
            return await self._reach()
        return way

    async def _watch(self, way: int, make: Callable[[], Awaitable[T]]) -> T:
        """The answer; a failure that may be the way's is held against it."""
        began_at, faults = self._clock.now(), self._preference.faults
        try:
            return await make()
        except PeerRefusedError:
            raise  # The server has heard and does not want to: no other way would change its mind.
        except PeerError as error:
            self._preference.fault(way, error, faults, self._clock.now())
            raise
        except CancelledError:
            waited_s = self._clock.now() - began_at
            if waited_s >= SILENCE_S:
                silence = PeerTimeoutError(f"{self._where} did not answer for {waited_s:.0f} s")
                self._preference.fault(way, silence, faults, self._clock.now())
            raise

    # Which way.

    def _server(self, way: int) -> RemoteServer:
        if way not in self._servers:
            self._servers[way] = self._ways[way].make()
        return self._servers[way]

    async def _reach(self) -> int:
        """The way to use now; PeerError if neither leads to the server."""
        preference = self._preference
        if not preference.doubt and self._server(preference.chosen).status.state is ConnectionState.CONNECTED:
            if preference.chosen == OTHER and not preference.retry_in(self._clock.now()) and not self._trials.count:
                self._trials.start(self._try_preferred())
            return preference.chosen
        waiter: Deferred[int] = Deferred(self._forget)
        self._waiters.append(waiter)
        if not self._is_racing:
            self._is_racing = True
            self._attempts.start(self._race(*preference.order(self._clock.now())), self._arrived, self._failed)
        return await waiter

    async def _race(self, first: int, second: int) -> int:
        """The way that connects, the first one if it does so soon."""
        ways = first, second
        arrival = await race(self._server(first).connect, lambda: self._server(second).connect(), self._clock)
        if arrival.winner is None:
            self._preference.nowhere()
            raise self._away({ways[index]: error for index, error in arrival.errors.items()})
        late = f"it did not connect within {HEAD_START_S:g} s" if arrival.winner else ""
        self._judge(ways[arrival.winner], str(arrival.errors.get(1 - arrival.winner) or self._preference.doubt or late))
        return ways[arrival.winner]

    def _judge(self, way: int, failure: str) -> None:
        """Note which way connected, and say so where it is news."""
        preference, (preferred, other) = self._preference, self._ways
        if not preference.reached(way, self._clock.now(), failure):
            return
        if way == PREFERRED:
            log.info("{where} is reached over {name} again", where=self._where, name=preferred.name)
            return
        log.warn(
            "{where} is reached over {other}, as {name} does not work: {why}; it is tried again later",
            where=self._where,
            other=other.name,
            name=preferred.name,
            why=preference.reason,
        )

    def _away(self, errors: Mapping[int, GridError]) -> PeerError:
        words = [f"over {self._ways[way].name}: {errors[way]}" for way in (PREFERRED, OTHER)]
        return PeerGoneError(f"{self._where} cannot be reached; {'; '.join(words)}")

    def _arrived(self, way: int) -> None:
        self._is_racing = False
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.callback(way)

    def _failed(self, error: BaseException) -> None:
        self._is_racing = False
        if is_cancellation(error):
            error = PeerGoneError(f"the attempt to reach {self._where} was given up")
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.errback(error)

    def _forget(self, waiter: Deferred[int]) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)

    async def _try_preferred(self) -> None:
        """See whether the preferred way leads to the server again, while the other one serves."""
        try:
            await self._server(PREFERRED).connect()
        except GridError as error:
            self._preference.failed_again(self._clock.now(), str(error))
        else:
            self._judge(PREFERRED, "")


class _Upload:
    """An upload whose failures tell of the way that it goes."""

    def __init__(self, inner: Upload, watch: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]) -> None:
        self._inner = inner
        self._watch = watch

    @property
    def share_numbers(self) -> frozenset[ShareNumber]:
        """The shares allocated."""
        return self._inner.share_numbers

    async def write(self, writes: Sequence[ShareWrite]) -> None:
        """Store all of the writes."""
        await self._watch(lambda: self._inner.write(writes))

    async def close(self, share_numbers: Iterable[ShareNumber]) -> None:
        """Return when these shares are finished."""
        await self._watch(lambda: self._inner.close(share_numbers))

    async def abort(self, share_numbers: Iterable[ShareNumber] | None = None) -> None:
        """Give these shares up."""
        await self._watch(lambda: self._inner.abort(share_numbers))
