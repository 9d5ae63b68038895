"""What a client knows of one server: which of its addresses answers, what it offers, and how it stands.

The first call asks all addresses for their version, and the first to answer is used from then on [spec wire 18].
When a connection cannot be made any more, the next call asks anew, and no sooner than the backoff allows.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, evolve
from twisted.internet.defer import Deferred

from grid.errors import FormatError, GridError, PeerGoneError, PeerTimeoutError
from grid.limits import CONNECT_DEADLINE_S
from grid.ports import Clock, ServerVersion
from grid.runtime import Tasks, is_cancellation, with_deadline
from grid.wire.backoff import Backoff
from grid.wire.http.answers import EXTENSIONS_HEADER, parse_version
from grid.wire.http.asking import Asker, Entrance, Question, first_of
from grid.wire.status import ConnectionState, ConnectionStatus

_VERSION = Question(method=b"GET", path=b"/storage/v1/version")


@define(eq=False)
class Session:
    """Where the server answers, and what it is. plain: where it may be read from in the clear, if at all."""

    entrance: Entrance
    version: ServerVersion
    plain: Entrance | None = None

    @property
    def reading(self) -> Entrance:
        """Where to read shares from."""
        return self.plain or self.entrance


class Link:
    """One server's session."""

    def __init__(self, asker: Asker, entrances: Sequence[Entrance], plain: Entrance | None, clock: Clock) -> None:
        self._asker = asker
        self._entrances = tuple(entrances)
        self._plain = plain
        self._clock = clock
        self._session: Session | None = None
        self._waiters: list[Deferred[Session]] = []
        self._attempts = Tasks()
        self._backoff = Backoff(clock)
        self._status = ConnectionStatus(state=ConnectionState.IDLE, since=clock.unix_time())

    @property
    def status(self) -> ConnectionStatus:
        """How the connection stands."""
        return self._status

    @property
    def current(self) -> Session | None:
        """The session, if there is one."""
        return self._session

    async def session(self) -> Session:
        """The present session, or the next one; PeerGoneError, PeerTimeoutError or another PeerError if none comes."""
        if self._session is not None:
            return self._session
        if not self._attempts.count:
            self._backoff.require_due(self._asker.where)
            self._set_state(ConnectionState.CONNECTING)
            self._attempts.start(self._connect(), self._connected, self._failed)
        if self._session is not None:
            return self._session
        waiter: Deferred[Session] = Deferred(self._forget)
        self._waiters.append(waiter)
        return await waiter

    async def ask_version(self, session: Session) -> ServerVersion:
        """What the server says now."""
        session.version = await self._greet(session.entrance)
        self._status = evolve(self._status, version=session.version)
        return session.version

    def lost(self, session: Session, why: str) -> None:
        """The server could not be reached: the next call begins anew."""
        if self._session is session:
            self._session = None
            self._set_state(ConnectionState.WAITING, why)

    def close(self) -> None:
        """Give up the attempt and the connections; the next session() would connect again."""
        self._attempts.cancel()
        self._session = None
        self._set_state(ConnectionState.WAITING, "closed here")
        for entrance in (*self._entrances, *([self._plain] if self._plain else ())):
            self._asker.pool.close(entrance.address)

    async def _greet(self, entrance: Entrance) -> ServerVersion:
        reply = await self._asker.require(entrance, _VERSION)
        offers = reply.head.headers.get(EXTENSIONS_HEADER.lower(), ())
        try:
            return parse_version(reply.body, offers)
        except FormatError as error:
            raise self._asker.misbehaved(error) from error

    async def _connect(self) -> Session:
        async def attempt(entrance: Entrance) -> Session:
            return Session(entrance, await self._greet(entrance), self._plain)

        if not self._entrances:
            raise PeerGoneError(f"{self._asker.where} has no HTTP address that can be reached from here")
        attempts = first_of(attempt(entrance) for entrance in self._entrances)
        return await with_deadline(self._clock, attempts, CONNECT_DEADLINE_S, self._too_late)

    def _too_late(self) -> Exception:
        return PeerTimeoutError(f"{self._asker.where} did not finish connecting within {CONNECT_DEADLINE_S:g} s")

    def _connected(self, session: Session) -> None:
        self._session = session
        self._backoff.reset()
        self._set_state(ConnectionState.CONNECTED, version=session.version)
        address = session.entrance.host.decode("ascii")
        self._status = evolve(self._status, place=f"tcp:{address}", transport="http")
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.callback(session)

    def _failed(self, error: BaseException) -> None:
        if is_cancellation(error):
            error = PeerGoneError(f"the attempt to reach {self._asker.where} was given up")
        elif isinstance(error, GridError):
            self._backoff.failed(str(error))
            self._set_state(ConnectionState.WAITING, str(error))
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.errback(error)

    def _forget(self, waiter: Deferred[Session]) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)

    def _set_state(self, state: ConnectionState, detail: str = "", version: ServerVersion | None = None) -> None:
        self._status = ConnectionStatus(
            state=state, since=self._clock.unix_time(), detail=detail, version=version or self._status.version
        )
