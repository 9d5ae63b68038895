"""What a client knows of one server: which of its addresses answers, what it offers, and its state.

The first call asks all addresses for their version, and the first to answer is used from then on [spec wire 18].
When no connection can be made any more, the next call asks again, but not before the backoff allows. If the server closes the last
connection while it is idle, as one that ends does, the link asks at once whether the server is still there. (decision 388)
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from grid.errors import FormatError, GridError, PeerGoneError, PeerTimeoutError
from grid.limits import CONNECT_DEADLINE_S
from grid.ports import Clock, ServerVersion
from grid.runtime import Tasks, with_deadline
from grid.values import define
from grid.wire.http.client.requester import Access, HttpRequest, Requester, first_of
from grid.wire.http.format.answers import DATE_HEADER, EXTENSIONS_HEADER, parse_date, parse_version
from grid.wire.reasons import MUTE, unreachable
from grid.wire.session import Connector, SessionKeeper
from grid.wire.status import ConnectionStatus, brief

_VERSION = HttpRequest(method=b"GET", path=b"/storage/v1/version")

CHECKS_APART_S = 10.0
"""Least time between checks: a server that is full of connections closes idle ones, and would close those of the checks."""


@define(eq=False)
class Session:
    """Where the server answers, and its version. plain: where its shares can be read unencrypted, if anywhere."""

    access: Access
    version: ServerVersion
    plain: Access | None = None

    @property
    def reading(self) -> Access:
        """Where to read shares from."""
        return self.plain or self.access


class Link:
    """One server's session."""

    def __init__(self, requester: Requester, accesses: Sequence[Access], plain: Access | None, clock: Clock) -> None:
        self._requester = requester
        self._accesses = tuple(accesses)
        self._plain = plain
        self._clock = clock
        self._checks = Tasks()
        self._next_check_at = clock.now()
        self._clock_ahead_s: float | None = None
        connector = Connector(transport="http", connect=self._connect, address=_address, diagnose=self._diagnose)
        self._keeper: SessionKeeper[Session] = SessionKeeper(connector, clock, requester.where, CONNECT_DEADLINE_S)
        self._plain_status = self._shown_status = self._keeper.status

    @property
    def status(self) -> ConnectionStatus:
        """The state of the connection, and the server's clock when it was last asked for its version."""
        status = self._keeper.status
        if status is not self._plain_status or self._shown_status.clock_ahead_s != self._clock_ahead_s:
            self._plain_status = status
            self._shown_status = evolve(status, clock_ahead_s=self._clock_ahead_s)
        return self._shown_status

    @property
    def current(self) -> Session | None:
        """The session, or None."""
        return self._keeper.current

    async def session(self) -> Session:
        """The current session, or a new one; PeerGoneError, PeerTimeoutError or another PeerError if there is none."""
        return await self._keeper.session()

    async def ask_version(self, session: Session) -> ServerVersion:
        """Ask the server for its version now."""
        version = await self._greet(session.access)
        self._keeper.learned(session, version)
        return version

    def lost(self, session: Session, why: str) -> None:
        """Note that the server could not be reached, so that the next call starts over."""
        self._keeper.lost(session, why)

    def forget_failures(self) -> None:
        """Forget failures, because the server is said to be back."""
        self._keeper.forget_failures()

    def close(self) -> None:
        """Give up the attempt and the connections. Another session() would connect again."""
        self._keeper.close()
        self._checks.cancel()
        for access in self._accesses:
            self._requester.pool.unwatch(access.address, self._broken)
        for access in (*self._accesses, *([self._plain] if self._plain else ())):
            self._requester.pool.close(access.address)

    async def _greet(self, access: Access) -> ServerVersion:
        began_at = self._clock.unix_time()
        reply = await self._requester.require(access, _VERSION)
        date = parse_date(reply.head.headers.get(DATE_HEADER.lower(), ()))
        self._clock_ahead_s = None if date is None else _ahead_s(date, began_at, self._clock.unix_time())
        offers = reply.head.headers.get(EXTENSIONS_HEADER.lower(), ())
        try:
            version = parse_version(reply.body, offers)
        except FormatError as error:
            raise self._requester.misbehaved(error) from error
        if version.batched_reads:
            self._requester.pool.note_patience(access.address, _VERSION.pack(access))
        return version

    async def _connect(self) -> Session:
        async def attempt(access: Access) -> Session:
            return Session(access, await self._greet(access), self._plain)

        if not self._accesses:
            raise unreachable(self._requester.where, "no HTTP address that can be reached from here")
        session = await first_of(attempt(access) for access in self._accesses)
        self._requester.pool.watch(session.access.address, self._broken)
        return session

    def _diagnose(self) -> str:
        return MUTE if any(self._requester.pool.is_mute(access.address) for access in self._accesses) else ""

    def _broken(self) -> None:
        session, now = self.current, self._clock.now()
        if session is None or self._checks.count:
            return
        # A server that is about to end may have answered the last check.
        wait_s = max(0.0, self._next_check_at - now)
        self._next_check_at = now + wait_s + CHECKS_APART_S
        self._checks.start(self._check(session, wait_s))

    async def _check(self, session: Session, wait_s: float) -> None:
        def late() -> PeerTimeoutError:
            return PeerTimeoutError(
                f"{self._requester.where} did not answer", reason="no answer", server=self._requester.where
            )

        if wait_s:
            await self._clock.sleep(wait_s)
        if self.current is not session:
            return
        try:
            await with_deadline(self._clock, self.ask_version(session), CONNECT_DEADLINE_S, late)
        except (PeerGoneError, PeerTimeoutError) as error:
            self.lost(session, brief(error))
        except GridError:
            return  # It answers, if only with an error.


def _ahead_s(date: float, began_at: float, ended_at: float) -> float:
    """By how much a clock that read `date`, in whole seconds, at some time in between is at least ahead of ours."""
    if date + 1 < began_at:
        return date + 1 - began_at
    return max(0.0, date - ended_at)


def _address(session: Session) -> str:
    return f"tcp:{session.access.host.decode('ascii')}"
