"""Meets another node at a server of magic-wormhole, to give it an invitation to a grid or to take one. [spec cli 4.4]

The server only carries messages that both sides encrypt with a key made from the code; it may still be hostile, so what it sends
is counted. Nothing is written to disk here, and nothing secret into an error. The library is an extra, and is imported
only when it is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from zope.interface import directlyProvides, providedBy

from grid.discovery.invitation import (
    APPLICATION,
    INVITER,
    JOINER,
    Invitation,
    pack_introduction,
    pack_invitation,
    parse_invitation,
    require_ability,
)
from grid.errors import (
    ConfigError,
    FormatError,
    GridError,
    NoInvitationError,
    PeerError,
    PeerGoneError,
    PeerTimeoutError,
    WrongCodeError,
)
from grid.limits import MAX_MAILBOX_BYTES
from grid.node.redaction import one_line
from grid.plural import counted
from grid.ports import Clock
from grid.runtime import with_deadline
from grid.values import frozen

T = TypeVar("T")

CLOSE_S = 5.0
"""Seconds that a server gets to withdraw a code when a meeting fails."""

MAX_REASON = 200


@frozen(kw_only=True)
class Meeting:
    """Where two sides meet, and how long to wait for an answer.

    there_s: for what the server has: its welcome, and an inviter's first message. answer_s: for any other answer.
    """

    reactor: Any
    clock: Clock
    server: str
    there_s: float = 20.0
    answer_s: float = 60.0


async def offer(meeting: Meeting, invitation: Invitation, show: Callable[[str], None], wait_s: float) -> None:
    """Get a code, show it, and give the invitation to the first who uses it within wait_s.

    Raises NoInvitationError if nobody does, WrongCodeError if somebody tries a wrong code (which ends this one), PeerError,
    ConfigError. Returns once the server has the invitation.
    """
    time = counted(round(wait_s / 60), "minute") if wait_s >= 120 else counted(max(1, round(wait_s)), "second")
    async with _opened(meeting, "somebody tried a wrong code, so this one ended: invite again") as line:
        line.wormhole.allocate_code()
        show(await line.answer(line.wormhole.get_code()))
        line.wormhole.send_message(pack_introduction(INVITER))
        nobody = NoInvitationError(f"nobody used the code within {time}: invite again when the other side is ready")
        require_ability(await line.within(line.wormhole.get_message(), wait_s, nobody), JOINER)
        line.wormhole.send_message(pack_invitation(invitation))
        await line.answer(line.wormhole.close())


async def accept(meeting: Meeting, code: str) -> Invitation:
    """The invitation behind a code. NoInvitationError if nobody is there, WrongCodeError, PeerError, ConfigError."""
    async with _opened(meeting, "the code is wrong, and ended with this attempt: ask for a new one") as line:
        line.wormhole.set_code(code)
        line.wormhole.send_message(pack_introduction(JOINER))
        nobody = NoInvitationError(
            "nobody offers an invitation with this code: it was used, it ended, or its number is mistyped; ask for a new one"
        )
        await line.within(line.wormhole.get_unverified_key(), meeting.there_s, nobody)
        silent = PeerTimeoutError("the inviter stopped answering: does it still wait, with this code?")
        require_ability(await line.within(line.wormhole.get_message(), meeting.answer_s, silent), INVITER)
        return parse_invitation(await line.within(line.wormhole.get_message(), meeting.answer_s, silent))


@frozen
class _Line:
    """One side's connection to the server, and through it to the other side."""

    meeting: Meeting
    wormhole: Any
    traffic: _Traffic

    async def within(self, awaitable: Awaitable[T], seconds: float, error: GridError) -> T:
        """The answer; raises the error if it takes longer, PeerError if the server sends too much meanwhile."""
        task = Deferred.fromCoroutine(with_deadline(self.meeting.clock, awaitable, seconds, lambda: error))
        self.traffic.on_excess = task.cancel
        try:
            return await task
        except CancelledError:
            if self.traffic.is_too_much:
                words = "sent too much: it is no wormhole server, or a broken one; choose another"
                raise PeerError(f"{self.meeting.server} {words}") from None
            raise

    async def answer(self, awaitable: Awaitable[T], seconds: float = 0.0) -> T:
        """What the server itself answers, within answer_s unless another time is given."""
        silent = PeerGoneError(
            f"{self.meeting.server} does not answer: is it a wormhole server, and reachable from here?"
        )
        return await self.within(awaitable, seconds or self.meeting.answer_s, silent)


@asynccontextmanager
async def _opened(meeting: Meeting, on_wrong_code: str) -> AsyncIterator[_Line]:
    """A line to the server, closed at the end in any case. Errors of the library become ours."""
    library, traffic = require_library(), _Traffic()
    reactor = _CountingReactor(meeting.reactor, traffic)
    wormhole = library.create(APPLICATION, meeting.server, reactor)
    line = _Line(meeting, wormhole, traffic)
    try:
        await line.answer(wormhole.get_welcome(), meeting.there_s)
        yield line
    except (GridError, CancelledError, OSError) as error:  # OSError: the code could not be shown.
        if isinstance(error, FormatError):
            raise PeerError(f"{error}; nothing was changed") from None
        raise
    except Exception as error:
        raise _translated(error, meeting.server, on_wrong_code) from error
    finally:
        with suppress(Exception):
            await with_deadline(meeting.clock, wormhole.close(), CLOSE_S, lambda: PeerTimeoutError("not closed"))


def _translated(error: Exception, server: str, on_wrong_code: str) -> GridError:
    """What the library's error means here."""
    errors = import_module("wormhole.errors")
    if isinstance(error, errors.ServerConnectionError):
        why = one_line(str(error))[:MAX_REASON].rstrip(".")
        return PeerGoneError(
            f"cannot reach the wormhole server {server} ({why}): is that its address, and does it run?"
        )
    if isinstance(error, errors.WelcomeError):
        return PeerError(f"the wormhole server {server} refuses: {one_line(str(error))[:MAX_REASON]}")
    if isinstance(error, errors.WrongPasswordError):
        return WrongCodeError(on_wrong_code)
    if isinstance(error, errors.ServerError):
        why = one_line(str(error))[:MAX_REASON]
        if why in ("crowded", "reclaimed"):
            return NoInvitationError("somebody else is using, or has used, this code: ask for a new one")
        return PeerError(f"the wormhole server {server} reports an error: {why}")
    return PeerError(f"the wormhole server {server} sent an invalid answer: choose another, or try again later")


def require_library() -> Any:  # noqa: ANN401 - it has no types
    """The library; ConfigError, which says how to get it, if it is not installed."""
    try:
        return import_module("wormhole")
    except ImportError:
        words = "install Grid again with its extra: pipx install --force '.[invite]'"
        raise ConfigError(f"invitations need the package magic-wormhole: {words}") from None


class _Traffic:
    """What the server has sent. on_excess: called when that is too much."""

    def __init__(self) -> None:
        self.is_too_much = False
        self.on_excess: Callable[[], None] = lambda: None
        self._bytes_left = MAX_MAILBOX_BYTES

    def count(self, size: int) -> bool:
        """Whether these bytes may still be read."""
        self._bytes_left -= size
        if self._bytes_left < 0 and not self.is_too_much:
            self.is_too_much = True
            self.on_excess()
        return self._bytes_left >= 0


class _CountedConnection(ProtocolWrapper):
    """Passes on what arrives, up to the limit of all connections together."""

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        assert isinstance(self.factory, _CountedConnections)
        transport: Any = self.transport
        if self.factory.traffic.count(len(data)):
            super().dataReceived(data)  # type: ignore[no-untyped-call]
        else:
            transport.abortConnection()


class _CountedConnections(WrappingFactory):
    protocol = _CountedConnection
    noisy = False

    def __init__(self, wrapped: Any, traffic: _Traffic) -> None:  # noqa: ANN401
        super().__init__(wrapped)  # type: ignore[no-untyped-call]
        self.traffic = traffic


class _CountingReactor:
    """A reactor whose outgoing connections are counted: the library reads messages of any size."""

    def __init__(self, reactor: Any, traffic: _Traffic) -> None:  # noqa: ANN401
        self._reactor, self._traffic = reactor, traffic
        directlyProvides(self, providedBy(reactor))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._reactor, name)

    def connectTCP(self, host: str, port: int, factory: Any, *rest: Any, **named: Any) -> Any:  # noqa: ANN401, N802
        """Connect, and count what arrives."""
        return self._reactor.connectTCP(host, port, _CountedConnections(factory, self._traffic), *rest, **named)
