"""The session with one server: made when first needed, shared by all calls, made again after a loss; and its state in words.

The transport decides how a session is made and what it holds. There is never more than one session or attempt at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from attrs import evolve

from grid.errors import GridError, PeerTimeoutError
from grid.ports import Clock, ServerVersion
from grid.runtime import with_deadline
from grid.values import frozen
from grid.wire.backoff import Backoff
from grid.wire.single_flight import SingleFlight
from grid.wire.status import ConnectionState, ConnectionStatus, brief


class _Session(Protocol):
    version: ServerVersion


S = TypeVar("S", bound=_Session)


def _nothing() -> None:
    return


def _unknown() -> str:
    return ""


@frozen(kw_only=True)
class Connector(Generic[S]):
    """How sessions are made. address: the session's endpoint as a location hint. clean_up: called after a failed attempt.

    diagnose: why the running attempt takes long, if that is known.
    """

    transport: str
    connect: Callable[[], Awaitable[S]]
    address: Callable[[S], str]
    clean_up: Callable[[], None] = _nothing
    diagnose: Callable[[], str] = _unknown


class SessionKeeper(Generic[S]):
    """Keeps the session with one server."""

    def __init__(self, connector: Connector[S], clock: Clock, where: str, deadline_s: float) -> None:
        """where: the server's name in messages; deadline_s: for one whole attempt."""
        self._connector = connector
        self._clock = clock
        self._where = where
        self._session: S | None = None
        self._backoff = Backoff(clock)
        self._flight = SingleFlight(
            connector.connect, clock, deadline_s, where, arrived=self._arrived, failed=self._failed
        )
        self._status = ConnectionStatus(state=ConnectionState.IDLE, since=clock.unix_time())

    @property
    def status(self) -> ConnectionStatus:
        """The state of the connection."""
        if self._status.state is ConnectionState.CONNECTING and (why := self._connector.diagnose()):
            return evolve(self._status, detail=why)
        return self._status

    @property
    def current(self) -> S | None:
        """The session, or None."""
        return self._session

    async def session(self) -> S:
        """The current session, or a new one; PeerGoneError, PeerTimeoutError or another PeerError if there is none."""
        if self._session is not None:
            return self._session
        if not self._flight.is_flying:
            self._backoff.begin(self._where)
            self._set_state(ConnectionState.CONNECTING, self._status.detail)
        patience_s = self._backoff.patience_s()
        if patience_s is None:
            return await self._flight.join()
        if not patience_s:
            raise self._backoff.away(self._where)
        return await with_deadline(
            self._clock, self._flight.join(), patience_s, lambda: self._backoff.away(self._where)
        )

    def learned(self, session: S, version: ServerVersion) -> None:
        """Note the server's current version."""
        session.version = version
        if self._session is session:
            self._status = evolve(self._status, version=version)

    def lost(self, session: S, why: str) -> None:
        """Note that the session has ended, so that the next call starts over."""
        if self._session is session:
            self._session = None
            self._set_state(ConnectionState.WAITING, why, session.version)

    def forget_failures(self) -> None:
        """Connect at the next call without waiting for the backoff, because the server is said to be back."""
        self._backoff.forget()

    def close(self) -> None:
        """Give up the attempt and the session. Another call would connect again."""
        self._flight.cancel()
        self._session = None
        self._set_state(ConnectionState.WAITING, "closed here")

    def _arrived(self, session: S) -> None:
        self._session = session
        self._backoff.reset()
        self._set_state(ConnectionState.CONNECTED, version=session.version)
        self._status = evolve(
            self._status, address=self._connector.address(session), transport=self._connector.transport
        )

    def _failed(self, error: GridError) -> None:
        self._session = None
        is_late = isinstance(error, PeerTimeoutError)
        why = (self._connector.diagnose() if is_late else "") or brief(error)
        self._backoff.failed(why)
        self._set_state(ConnectionState.WAITING, why)
        self._connector.clean_up()

    def _set_state(self, state: ConnectionState, detail: str = "", version: ServerVersion | None = None) -> None:
        self._status = ConnectionStatus(
            state=state, since=self._clock.unix_time(), detail=detail, version=version or self._status.version
        )
