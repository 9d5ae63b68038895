"""All HTTP connections of one process, kept for further requests, with a limited number per server.

A connection is trusted only if the hash of the server's key is the one in its NURL.
Cost: a new connection takes the TCP and TLS handshakes; an idle one only its timer.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, DeferredSemaphore
from twisted.internet.endpoints import HostnameEndpoint, TCP4ClientEndpoint, TCP6ClientEndpoint
from twisted.internet.protocol import Factory

from grid.errors import FormatError, GridError, PeerTimeoutError
from grid.limits import CONNECT_DEADLINE_S, MAX_HTTP_CBOR_ANSWER
from grid.ports import Buffer, Clock
from grid.runtime import with_deadline
from grid.values import frozen
from grid.wire.connections.connect_watch import QUIET_S, ConnectWatch, OnQuiet, ignore_quiet
from grid.wire.http.client.connection import IDLE_S, ClientConnection, Discarder
from grid.wire.http.client.destination import Destination
from grid.wire.http.client.spread import Direction
from grid.wire.http.format.tls import TlsLayer, client_context, spki_hash
from grid.wire.reasons import ANOTHER_NODE, MUTE, not_connected, unreachable

CONNECTIONS_PER_SERVER = 8
"""Most connections per server; 1.20's own clients use 10. Streams may use some of them for a while."""

MOST_LONG_IDLE = 200
"""Idle connections kept for LONG_IDLE_S, over all servers: a process may have 1,024 descriptors by default."""


@frozen
class Address:
    """Where a server is, and the hash of its key; None: unencrypted and unauthenticated."""

    host: str
    port: int
    spki_hash: str | None


class Pool:
    """The connections of one process."""

    def __init__(self, reactor: Any, clock: Clock, per_server: int = CONNECTIONS_PER_SERVER) -> None:
        self._reactor = reactor
        self._clock = clock
        self._per_server = per_server
        self._destinations: dict[Address, Destination] = {}
        self._broken: dict[Address, set[Callable[[], None]]] = {}
        self._context = client_context()

    async def acquire(
        self,
        address: Address,
        where: str,
        *,
        fresh: bool = False,
        most: Direction | None = None,
        on_quiet: OnQuiet = ignore_quiet,
    ) -> tuple[ClientConnection, bool]:
        """A connection for one request, and whether it was used before; PeerUnreachableError, PeerTimeoutError.

        fresh: the request must not go to a connection on which it might have to be repeated. most: the direction of many bytes, for
        which a long line's quickest idle connection is taken. on_quiet: called when connecting gets no sign of life.
        """
        destination = self._destination(address)
        while True:
            if most is not None and destination.line.is_long:
                destination.bring_forward(most)
            connection = self._take_idle(destination, fresh)
            if connection is not None:
                destination.busy.add(connection)
                return connection, True
            if destination.count < self._per_server:
                break
            await destination.wait()
        destination.connecting += 1
        try:
            connection = await self._connect(address, where, destination, on_quiet)
        except BaseException:
            destination.connecting -= 1
            destination.wake_one()
            raise
        destination.connecting -= 1
        destination.busy.add(connection)
        return connection, False

    def release(self, address: Address, connection: ClientConnection) -> None:
        """Return a connection after its request."""
        destination = self._destination(address)
        destination.busy.discard(connection)
        if connection.is_reusable and not connection.is_lost:
            destination.idle.append(connection)
            seconds = destination.idle_s
            if seconds > IDLE_S and sum(len(each.idle) for each in self._destinations.values()) > MOST_LONG_IDLE:
                seconds = IDLE_S
            connection.keep_idle(seconds)
        destination.wake_one()

    def _destination(self, address: Address) -> Destination:
        """The one of this address. Every request asks several times, so it must not make one in vain."""
        destination = self._destinations.get(address)
        if destination is None:
            destination = self._destinations[address] = Destination()
        return destination

    def note_patience(self, address: Address, greeting: Sequence[Buffer]) -> None:
        """Note that the server at the address keeps idle connections for HTTP_IDLE_DEADLINE_S, once they had a request.

        greeting: a request for connections that are opened for later.
        """
        destination = self._destination(address)
        destination.greeting = greeting
        for connection in destination.idle:
            connection.keep_idle(destination.idle_s)

    def part_count(self, address: Address, direction: Direction, size: int) -> int:
        """Into how many parts to split a message of that many bytes, which then take their turns.

        Either into pieces, for any connection that becomes free, or into one part for each of several open connections. Missing
        ones are opened for later messages: this one would wait for them as long as it would gain.
        """
        destination = self._destinations.get(address)
        if destination is None:
            return 1
        pieces = destination.line.piece_count(direction, size, self._clock.now())
        if pieces > 1:
            return pieces
        free = self._per_server - len(destination.busy) - destination.connecting - len(destination.waiters)
        count = destination.line.part_count(direction, size, free, self._clock.now())
        if count < 2:
            return 1  # It waits for a connection of its own if none is idle.
        ready = sum(connection.is_reusable and not connection.is_lost for connection in destination.idle)
        for _ in range(count - ready - destination.connecting):
            self._open_beside(address, destination)
        return max(1, min(count, ready))

    def turns(self, address: Address, direction: Direction) -> DeferredSemaphore:
        """What each part of a split message must hold while it is on its way."""
        return self._destination(address).turns[direction]

    def moved(self, address: Address, direction: Direction, size: int) -> None:
        """Note that a message of that many bytes went to the address or came from it."""
        destination = self._destinations.get(address)
        if destination is not None:
            destination.line.moved(direction, size, self._clock.now())

    def is_mute(self, address: Address) -> bool:
        """Whether the address accepts connections, but its server gives no sign of life on the latest one."""
        destination = self._destinations.get(address)
        accepted_at = None if destination is None else destination.accepted_at
        return accepted_at is not None and self._clock.now() >= accepted_at + QUIET_S

    def watch(self, address: Address, broken: Callable[[], None]) -> None:
        """From now on, call `broken` when the server has closed the last connection to the address, and it was idle."""
        self._broken.setdefault(address, set()).add(broken)

    def unwatch(self, address: Address, broken: Callable[[], None]) -> None:
        """End `watch`."""
        self._broken.get(address, set()).discard(broken)

    def close(self, address: Address | None = None) -> None:
        """Close the connections to that address, or all connections."""
        destinations = (
            list(self._destinations.values()) if address is None else [self._destinations.get(address, Destination())]
        )
        for destination in destinations:
            for connection in [*destination.idle, *destination.busy]:
                connection.abort()
            for opening in list(destination.opening):
                opening.cancel()

    def _open_beside(self, address: Address, destination: Destination) -> None:
        """Open a connection for later messages. If that fails, the next request that needs one says why."""
        destination.connecting += 1

        async def connect() -> None:
            try:
                connection = await self._connect(address, address.host, destination, ignore_quiet)
                if destination.greeting:  # A server closes a connection that shows no request for half a minute.
                    await connection.ask(destination.greeting, lambda _: Discarder(MAX_HTTP_CBOR_ANSWER))
            except BaseException as error:
                destination.connecting -= 1
                destination.wake_one()
                if isinstance(error, GridError):
                    return
                raise
            destination.connecting -= 1
            self.release(address, connection)

        opening = Deferred.fromCoroutine(connect())
        destination.opening.add(opening)
        opening.addBoth(lambda _: destination.opening.discard(opening))

    def _take_idle(self, destination: Destination, fresh: bool) -> ClientConnection | None:
        while destination.idle:
            connection = destination.idle[-1]
            is_usable = connection.is_reusable and not connection.is_lost
            is_stale = fresh and self._clock.now() - connection.idle_since > destination.fresh_s
            if is_usable and is_stale and destination.count < self._per_server:
                return None  # Keep it for requests that may be repeated.
            destination.idle.pop()
            if is_usable and is_stale:
                connection.abort()
            elif is_usable:
                return connection
        return None

    async def _connect(
        self, address: Address, where: str, destination: Destination, on_quiet: OnQuiet
    ) -> ClientConnection:
        watch = ConnectWatch(self._clock, on_quiet)
        opening = _Opening(address.spki_hash, where)

        def lost(connection: ClientConnection) -> None:
            if connection in destination.idle:
                destination.idle.remove(connection)
                if not connection.is_closed_here and not destination.count:
                    for broken in list(self._broken.get(address, ())):
                        broken()
            opening.fail("the connection was closed at once")

        connection = ClientConnection(self._clock, where, lost)
        protocol: Any = connection
        if address.spki_hash is not None:
            protocol = TlsLayer(
                self._context, connection, server_side=False, accept_peer=opening.accept, on_open=opening.succeed
            )

        async def body() -> None:
            await self._endpoint(address).connect(_OneProtocol(protocol))
            watch.accepted()
            destination.accepted_at = self._clock.now()
            if address.spki_hash is None:
                opening.succeed()
            await opening.outcome

        try:
            await with_deadline(
                self._clock, body(), CONNECT_DEADLINE_S, lambda: _too_late(where, self.is_mute(address))
            )
        except (GridError, CancelledError):
            connection.abort()
            raise
        except Exception as error:
            # Besides the system's errors, Twisted raises its own, and ValueError for impossible host names.
            connection.abort()
            raise not_connected(where, error) from error
        except BaseException:
            connection.abort()
            raise
        finally:
            watch.end()
            destination.accepted_at = None
            opening.outcome.addErrback(lambda _: None)  # Everybody who waited has been notified.
        destination.line.round_trip_s = connection.round_trip_s()
        return connection

    def _endpoint(self, address: Address) -> Any:
        try:
            version = ipaddress.ip_address(address.host).version
        except ValueError:
            return HostnameEndpoint(self._reactor, address.host, address.port)
        kind = TCP4ClientEndpoint if version == 4 else TCP6ClientEndpoint
        return kind(self._reactor, address.host, address.port)


class _Opening:
    """Whether a new connection leads to the right server. The first result counts."""

    def __init__(self, spki_hash: str | None, where: str) -> None:
        self.outcome: Deferred[None] = Deferred()
        self._spki_hash = spki_hash
        self._where = where

    def accept(self, certificate: bytes | None) -> bool:
        """Whether the certificate has the expected key."""
        accepted = _has_key(certificate, self._spki_hash)
        if not accepted:
            self.fail(ANOTHER_NODE)
        return accepted

    def succeed(self) -> None:
        """Note that the connection can be used."""
        if not self.outcome.called:
            self.outcome.callback(None)

    def fail(self, why: str) -> None:
        """Note that the connection cannot be used, or no longer."""
        if not self.outcome.called:
            self.outcome.errback(unreachable(self._where, why))


def _too_late(where: str, is_mute: bool) -> PeerTimeoutError:
    reason = MUTE if is_mute else "did not finish connecting"
    return PeerTimeoutError(f"{where} {reason}", reason=reason, server=where)


class _OneProtocol(Factory):
    noisy = False

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol

    def buildProtocol(self, addr: Any) -> Any:
        return self._protocol


def _has_key(certificate: bytes | None, expected: str | None) -> bool:
    try:
        return certificate is not None and expected is not None and spki_hash(certificate) == expected
    except FormatError:
        return False
