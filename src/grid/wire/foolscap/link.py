"""One server's connection: made when first needed, by one attempt for all who wait, and made again after a loss.

It decides when to try again (a failed attempt is not repeated at once, but each one at most 30 s later) and how
long an attempt may take; what is said over the connection is the client's.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from attrs import define, evolve, field
from foolscap.api import DeadReferenceError
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from grid.errors import GridError, PeerGoneError, PeerTimeoutError
from grid.limits import CONNECT_DEADLINE_S
from grid.ports import Clock, ServerVersion, ShareNumber, StorageIndex
from grid.runtime import Tasks, is_cancellation, with_deadline
from grid.wire.backoff import Backoff
from grid.wire.foolscap.remote_errors import REMOTE_ERRORS, from_remote
from grid.wire.locators import Furl
from grid.wire.status import ConnectionState, ConnectionStatus


@define(eq=False)
class Session:
    """What lasts as long as one connection: the remote server, its version, and readers obtained from it."""

    reference: Any
    version: ServerVersion
    readers: OrderedDict[StorageIndex, dict[ShareNumber, Any]] = field(factory=OrderedDict)


Greet = Callable[[Any], Awaitable[ServerVersion]]
"""Asks a fresh remote reference for its version."""


class Link:
    """The connection to one FURL through one Tub."""

    def __init__(
        self,
        tub: Any,
        furl: Furl,
        clock: Clock,
        greet: Greet,
        where: str,
        deadline_s: float = CONNECT_DEADLINE_S,
    ) -> None:
        """Greet is part of connecting; where: the server in messages; deadline_s: for one attempt as a whole."""
        self._tub = tub
        self._furl = furl
        self._clock = clock
        self._greet = greet
        self._where = where
        self._deadline_s = deadline_s
        self._session: Session | None = None
        self._waiters: list[Deferred[Session]] = []
        self._attempts = Tasks()
        self._is_attempting = False
        self._retry = Backoff(clock)
        self._status = ConnectionStatus(state=ConnectionState.IDLE, since=clock.unix_time())

    @property
    def status(self) -> ConnectionStatus:
        """How the connection stands."""
        return self._status

    @property
    def current(self) -> Session | None:
        """The session, if connected."""
        if self._session is not None and not self._session.reference.isConnected():
            # Requests fail a turn before Foolscap tells of the loss; whoever asks again then gets a new connection.
            self._lost(self._session)
        return self._session

    def learned(self, version: ServerVersion) -> None:
        """The server has said anew what it is."""
        if self._session is not None:
            self._session.version = version
            self._status = evolve(self._status, version=version)

    async def session(self) -> Session:
        """The present session, or the next one; PeerGoneError, PeerTimeoutError or another PeerError if none comes."""
        session = self.current
        if session is not None:
            return session
        if not self._is_attempting:
            self._retry.require_due(self._where)
        # An attempt may end before start() returns: whoever waits for it must be known by then.
        waiter: Deferred[Session] = Deferred(self._forget)
        self._waiters.append(waiter)
        if not self._is_attempting:
            self._is_attempting = True
            self._set_state(ConnectionState.CONNECTING)
            self._attempts.start(self._connect(), self._connected, self._failed)
        return await waiter

    def close(self) -> None:
        """Give up the attempt and the connection; the next session() would connect again."""
        self._attempts.cancel()
        self._drop("closed here")

    async def _connect(self) -> Session:
        async def body() -> Session:
            reference = await self._tub.getReference(self._furl.to_string())
            return Session(reference, await self._greet(reference))

        try:
            return await with_deadline(self._clock, body(), self._deadline_s, self._too_late)
        except REMOTE_ERRORS as error:
            raise from_remote(error, self._where) from error

    def _too_late(self) -> Exception:
        return PeerTimeoutError(f"{self._where} did not finish connecting within {self._deadline_s:g} s")

    def _connected(self, session: Session) -> None:
        self._is_attempting = False
        self._session = session
        self._retry.reset()
        self._set_state(ConnectionState.CONNECTED, version=session.version)
        self._status = evolve(self._status, place=_place(session.reference, self._furl), transport="foolscap")
        session.reference.notifyOnDisconnect(self._lost, session)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.callback(session)

    def _failed(self, error: BaseException) -> None:
        self._is_attempting = False
        if is_cancellation(error):
            error = PeerGoneError(f"the attempt to reach {self._where} was given up")
        if isinstance(error, GridError):
            self._drop(str(error))
        self._retry.failed(str(error))
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.errback(error)

    def _lost(self, session: Session) -> None:
        if self._session is session:
            self._session = None
            self._set_state(ConnectionState.WAITING, "the connection was lost", session.version)

    def _drop(self, why: str) -> None:
        """End whatever connection the Tub has to this server, so that the next attempt starts anew."""
        session, self._session = self._session, None
        self._set_state(ConnectionState.WAITING, why, session.version if session else None)
        for tub_reference, broker in list(self._tub.brokers.items()):
            if tub_reference.getTubID() == self._furl.tub_id:
                broker.shutdown(Failure(DeadReferenceError(why)))

    def _forget(self, waiter: Deferred[Session]) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)

    def _set_state(self, state: ConnectionState, detail: str = "", version: ServerVersion | None = None) -> None:
        self._status = ConnectionStatus(
            state=state, since=self._clock.unix_time(), detail=detail, version=version or self._status.version
        )


def _place(reference: Any, furl: Furl) -> str:
    """The hint that the connection was made by, as far as Foolscap tells."""
    try:
        winner = reference.getConnectionInfo().winningHint
    except AttributeError:
        winner = None  # An object in this process has no connection.
    if isinstance(winner, str):
        return winner
    return furl.hints[0] if furl.hints else "a place unknown"
