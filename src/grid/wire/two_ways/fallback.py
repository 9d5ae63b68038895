"""One StorageServer for a server with two transports: uses the better one, and falls back to the other.

Each transport proves the server's identity by itself, so falling back is just as secure. The other one is tried as
soon as the preferred one fails, or has not connected within HEAD_START_S. While it serves, the preferred one is retried
in the background. A call that may have been carried out is repeated only if repeating has no further effect.
[docs/decisions/0093-falling-back.md]

Cost: only a look at a connection's state while the preferred transport works.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from attrs import evolve
from twisted.internet.defer import CancelledError
from twisted.logger import Logger

from grid.errors import (
    GridError,
    NobodyListensError,
    PeerError,
    PeerGoneError,
    PeerRefusedError,
    PeerTimeoutError,
    PeerUnreachableError,
)
from grid.limits import CONNECT_DEADLINE_S
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
    SlotAnswer,
    SlotSecrets,
    StorageIndex,
    StoreAnswer,
    TestWrite,
)
from grid.runtime import Tasks, with_deadline
from grid.values import frozen
from grid.wire.queues.shared_messages import store_by_steps
from grid.wire.reasons import ABANDONED, ANOTHER_NODE, MUTE
from grid.wire.remote_server import server_name
from grid.wire.single_flight import SingleFlight
from grid.wire.status import ConnectionState, ConnectionStatus, RemoteServer, brief
from grid.wire.two_ways.headstart import HEAD_START_S, Connect, race
from grid.wire.two_ways.preference import OTHER, PREFERRED, Preference, Silence
from grid.wire.two_ways.watched_upload import WatchedUpload

T = TypeVar("T")

log = Logger()

RACE_S = CONNECT_DEADLINE_S + 2 * HEAD_START_S
"""How long both transports together may take to connect: longer than either alone. This ends anything that hangs."""

MOST_TRIES = 3
"""Most tries of one call: on a connection, on a new one, and over the other transport."""


@frozen(kw_only=True)
class Way:
    """A transport: its name for users, and a function that makes its client when first needed.

    addresses: its hosts and ports; empty if unknown.
    """

    name: str
    make: Callable[[], RemoteServer]
    addresses: frozenset[tuple[str, int]] = frozenset()


class FallbackServer:
    """The StorageServer behind two transports."""

    def __init__(self, identity: ServerIdentity, preferred: Way, other: Way, clock: Clock) -> None:
        """Opens no connection."""
        self.identity = identity
        """The server's identity, which is constant."""
        self._where = server_name(identity)
        self._ways = (preferred, other)
        self._servers: dict[int, RemoteServer] = {}
        self._clock = clock
        self._preference = Preference()
        self._silence = Silence()
        self._race = SingleFlight(
            self._choose, clock, RACE_S, self._where, arrived=lambda _: None, failed=lambda _: None
        )
        self._trials = Tasks()
        self._since = clock.unix_time()

    def __repr__(self) -> str:
        preferred, other = self._ways
        return f"<FallbackServer {self.identity.server_id}: {preferred.name}, else {other.name}>"

    @property
    def status(self) -> ConnectionStatus:
        """The state of the connection in use. Without one, what went wrong with both transports."""
        server = self._servers.get(self._preference.chosen)
        if server is None:
            return ConnectionStatus(state=ConnectionState.IDLE, since=self._since)
        status = server.status
        if status.state is not ConnectionState.CONNECTED:
            details = {way: each.status.detail for way, each in self._servers.items() if each.status.detail}
            return evolve(status, detail=self._both(details))
        if self._preference.chosen == OTHER:
            return evolve(status, fallback=f"{self._ways[PREFERRED].name} does not work: {self._preference.reason}")
        return status

    @property
    def known_version(self) -> ServerVersion | None:
        """The server's last known version, if the server can be expected to answer at once."""
        server = self._servers.get(self._preference.chosen)
        return None if server is None or self._preference.doubt else server.known_version

    def asks_for_room(self, size: int) -> bool:
        """Whether store_shares asks for room before it sends that many bytes, over the transport in use."""
        server = self._servers.get(self._preference.chosen)
        return server is not None and server.asks_for_room(size)

    async def connect(self) -> None:
        """Return when connected over either transport; PeerError if neither works."""
        await self._reach()

    def forget_failures(self) -> None:
        """Connect at the next call without waiting, and retry the preferred transport, because the server was announced again."""
        self._preference.forget()
        for server in self._servers.values():
            server.forget_failures()

    def close(self) -> None:
        """Close all connections and attempts."""
        self._race.cancel()
        self._trials.cancel()
        for server in self._servers.values():
            server.close()

    # Calls that may be repeated, because they change nothing or have no further effect the second time.

    async def get_version(self) -> ServerVersion:
        """The server's current version."""
        return await self._ask(lambda server: server.get_version())

    async def find_shares(
        self, storage_index: StorageIndex, ranges: Sequence[Range] = ()
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Every immutable share of the storage index, with those ranges of each."""
        return await self._ask(lambda server: server.find_shares(storage_index, ranges), _length(ranges))

    async def read_shares(
        self, storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Read ranges of immutable shares; missing shares are left out."""
        size = sum(map(_length, wants.values()))
        return await self._ask(lambda server: server.read_shares(storage_index, wants), size)

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Read ranges of mutable shares; all shares if none is named."""
        size = _length(ranges) * max(1, len(share_numbers))
        return await self._ask(lambda server: server.read_slot(storage_index, share_numbers, ranges), size)

    async def add_lease(self, storage_index: StorageIndex, secrets: LeaseSecrets) -> None:
        """Add or renew the lease on every share of the storage index."""
        await self._ask(lambda server: server.add_lease(storage_index, secrets))

    async def store_shares(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        """Store whole new shares. If a message was stored without an answer, the repeated one finds its shares."""
        connected = self._server(await self._connected())
        version = connected.known_version
        size = sum(store.size for store in stores)
        if version is None:
            return (await self._ask_once(lambda server: server.store_shares(stores), size))[1]
        if version.batched_stores and not connected.asks_for_room(size):
            return await self._ask(lambda server: server.store_shares(stores), size)
        return [await store_by_steps(self, each) for each in stores]

    # Calls that are made once, unless it is certain that the server did not receive them.

    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        """Allocate room for new shares. They are written over the transport that was used for the allocation."""
        way, allocation = await self._ask_once(
            lambda server: server.allocate(storage_index, secrets, share_numbers, share_size)
        )
        return evolve(
            allocation, upload=WatchedUpload(allocation.upload, lambda make, size: self._watch(way, make, size))
        )

    async def advise_corrupt(
        self, kind: ShareKind, storage_index: StorageIndex, share_number: ShareNumber, reason: str
    ) -> None:
        """Report to the server that its share is corrupt."""
        await self._ask_once(lambda server: server.advise_corrupt(kind, storage_index, share_number, reason))

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        """Test and, if every test holds, write, as one atomic step."""
        size = sum(len(data) for write in writes.values() for _, data in write.writes)
        _, answer = await self._ask_once(
            lambda server: server.test_and_write(storage_index, secrets, writes, ranges), size
        )
        return answer

    async def _ask(self, make: Callable[[RemoteServer], Awaitable[T]], size: int = 0) -> T:
        for _ in range(MOST_TRIES - 1):
            way = await self._reach()
            try:
                return await self._watch(way, lambda: make(self._server(way)), size)  # noqa: B023 - called before the next turn
            except PeerRefusedError:
                raise
            except PeerError:
                continue
        way = await self._reach()
        return await self._watch(way, lambda: make(self._server(way)), size)

    async def _ask_once(self, make: Callable[[RemoteServer], Awaitable[T]], size: int = 0) -> tuple[int, T]:
        for _ in range(MOST_TRIES - 1):
            way = await self._connected()
            try:
                return way, await self._watch(way, lambda: make(self._server(way)), size)  # noqa: B023 - as above
            except PeerUnreachableError:
                continue
        way = await self._connected()
        return way, await self._watch(way, lambda: make(self._server(way)), size)

    async def _connected(self) -> int:
        """Like _reach, but a connection that has just been lost is made again before anything is sent."""
        way = await self._reach()
        try:
            await self._server(way).connect()
        except PeerError:
            way = -1
        return way if way >= 0 else await self._reach()

    async def _watch(self, way: int, make: Callable[[], Awaitable[T]], size: int = 0) -> T:
        """Run a call. Failures that may be the transport's count against it. size: bytes that the call moves."""
        began_at, faults = self._clock.now(), self._preference.faults
        try:
            answer = await make()
        except PeerRefusedError:
            self._heard(way)
            raise  # The server has received it and refuses. Another transport would not change that.
        except PeerError as error:
            self._preference.fault(way, error, faults, self._clock.now())
            raise
        except CancelledError:
            silent_s = self._silence.gave_up(way, began_at, self._clock.now(), size)
            if silent_s:
                self._preference.silent(way, f"it did not answer for {silent_s:.1f} s", faults)
            raise
        self._heard(way)
        return answer

    def _heard(self, way: int) -> None:
        self._silence.heard(way, self._clock.now())
        self._preference.heard(way)

    # Choosing the transport.

    def _server(self, way: int) -> RemoteServer:
        if way not in self._servers:
            self._servers[way] = self._ways[way].make()
        return self._servers[way]

    async def _reach(self) -> int:
        """The transport to use now; PeerError if neither reaches the server."""
        preference = self._preference
        if not preference.doubt and self._server(preference.chosen).status.state is ConnectionState.CONNECTED:
            if preference.chosen == OTHER and not preference.retry_in(self._clock.now()) and not self._trials.count:
                self._trials.start(self._try_preferred())
            return preference.chosen
        return await self._race.join()

    async def _choose(self) -> int:
        """The transport that connects; the first one, if it does so soon."""
        preference = self._preference
        first, second = ways = preference.order(self._clock.now())
        connect: Connect = self._server(first).connect
        head_start_s = HEAD_START_S
        if preference.is_silent:
            # The server itself may be slow. Then its answer on the existing connection comes first.
            connect, head_start_s = self._server(first).get_version, 0.0
        refusal: list[NobodyListensError] = []

        async def connect_first() -> None:
            try:
                await connect()
            except NobodyListensError as error:
                refusal[:] = [error]
                raise

        async def connect_second() -> None:
            if refusal and self._is_same_address(first, second):
                raise refusal[0]  # Another protocol to the same silent address would not help, and costs an import.
            await self._server(second).connect()

        arrival = await race(connect_first, connect_second, self._clock, head_start_s)
        if arrival.winner is None:
            self._preference.nowhere()
            raise self._away({ways[index]: error for index, error in arrival.errors.items()})
        loser = arrival.errors.get(1 - arrival.winner)
        late = f"it did not connect within {HEAD_START_S:g} s" if arrival.winner else ""
        self._judge(ways[arrival.winner], brief(loser) if loser else self._preference.doubt or late)
        return ways[arrival.winner]

    def _is_same_address(self, one: int, other: int) -> bool:
        """Whether the other transport leads only to the same addresses."""
        addresses = self._ways[other].addresses
        return bool(addresses) and addresses <= self._ways[one].addresses

    def _judge(self, way: int, failure: str) -> None:
        """Note which transport connected, and log it if that is news."""
        preference, (preferred, other) = self._preference, self._ways
        if not preference.reached(way, self._clock.now(), failure):
            return
        if way == PREFERRED:
            log.info("using {name} for {where} again", where=self._where, name=preferred.name)
            return
        log.warn(
            "using {other} for {where}, because {name} does not work: {why}; {name} is tried again later",
            where=self._where,
            other=other.name,
            name=preferred.name,
            why=preference.reason,
        )

    def _away(self, errors: Mapping[int, GridError]) -> PeerError:
        reason = self._both({way: brief(error) for way, error in errors.items()})
        return PeerGoneError(f"{self._where} cannot be reached: {reason}", reason=reason, server=self._where)

    def _both(self, reasons: Mapping[int, str]) -> str:
        """What is wrong with both transports, said once if it is the same, or if it is known of one only.

        A reason that concerns the node itself is enough: it explains what goes wrong with the other transport, too.
        """
        for telling in (ANOTHER_NODE, MUTE):
            if telling in reasons.values():
                return telling
        reasons = {way: why for way, why in reasons.items() if why != ABANDONED} or reasons
        if len(set(reasons.values())) < 2:
            return next(iter(reasons.values()), "")
        return "; ".join(f"{self._ways[way].name}: {reasons[way]}" for way in sorted(reasons))

    async def _try_preferred(self) -> None:
        """Check whether the preferred transport works again, while the other one serves."""
        try:
            await with_deadline(self._clock, self._server(PREFERRED).connect(), RACE_S, self._too_late)
        except GridError as error:
            self._preference.failed_again(self._clock.now(), brief(error))
        else:
            self._judge(PREFERRED, "")

    def _too_late(self) -> PeerTimeoutError:
        reason = f"did not finish connecting within {RACE_S:g} s"
        return PeerTimeoutError(f"{self._where} {reason}", reason=reason, server=self._where)


def _length(ranges: Sequence[Range]) -> int:
    return sum(length for _, length in ranges)
