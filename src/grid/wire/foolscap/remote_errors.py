"""Errors on the wire: outgoing ones under class names that a 1.20 client knows, and incoming ones. [spec storage-server 12, wire 5]

Outgoing: only our own GridErrors keep their text. Any other exception is a bug; it is logged here, and the
peer learns only that it happened. Incoming: all text is hostile.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from foolscap.api import DeadReferenceError, Violation
from foolscap.ipb import InvalidHintError
from foolscap.tokens import (
    BananaError,
    NegotiationError,
    NoLocationHintsError,
    RemoteException,
    RemoteNegotiationError,
    WrongTubIdError,
)
from OpenSSL.SSL import Error as TlsError
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectError, ConnectingCancelledError, ConnectionClosed, DNSLookupError
from twisted.logger import Logger
from twisted.python.failure import Failure

from grid.errors import (
    BadWriteEnablerError,
    ConflictingWriteError,
    DataTooLargeError,
    GridError,
    NoSpaceError,
    PeerError,
    PeerGoneError,
    PeerRefusedError,
    UnknownVersionError,
)
from grid.wire.reasons import ANOTHER_NODE, words_for

MAX_REMOTE_TEXT = 300

T = TypeVar("T")

log = Logger()


def answer(work: Coroutine[Any, Any, T]) -> Deferred[T]:
    """Run the work for Foolscap: a Deferred whose failures a remote caller may see."""
    return Deferred.fromCoroutine(work).addErrback(to_remote)


def remote_class(qualified_name: str) -> type[Exception]:
    """An exception class that remote callers see under that name."""
    module, _, name = qualified_name.rpartition(".")
    return type(name, (Exception,), {"__module__": module, "__doc__": "What a remote caller sees of our error."})


_OUTWARD: tuple[tuple[type[GridError], type[Exception]], ...] = (
    (ConflictingWriteError, remote_class("allmydata.interfaces.ConflictingWriteError")),
    (DataTooLargeError, remote_class("allmydata.interfaces.DataTooLargeError")),
    (NoSpaceError, remote_class("allmydata.interfaces.NoSpace")),
    (BadWriteEnablerError, remote_class("allmydata.interfaces.BadWriteEnablerError")),
    (UnknownVersionError, remote_class("allmydata.storage.common.UnknownContainerVersionError")),
)
_DEFECT = remote_class("grid.errors.InternalError")

_INWARD: dict[str, type[GridError]] = {
    "ConflictingWriteError": ConflictingWriteError,
    "DataTooLargeError": DataTooLargeError,
    "NoSpace": NoSpaceError,
    "BadWriteEnablerError": BadWriteEnablerError,
}

_LOST: tuple[type[Exception], ...] = (
    DeadReferenceError,
    ConnectionClosed,
    ConnectError,
    ConnectingCancelledError,
    DNSLookupError,
    TlsError,
)
_UNREACHABLE: tuple[type[Exception], ...] = (
    NegotiationError,
    RemoteNegotiationError,
    NoLocationHintsError,
    InvalidHintError,
    WrongTubIdError,
    BananaError,
)
REMOTE_ERRORS = (RemoteException, Violation, *_LOST, *_UNREACHABLE)
"""What a remote call or an attempt to connect raises; from_remote converts each."""


def to_remote(failure: Failure) -> Failure:
    """The failure to send to a remote caller in place of this one."""
    error = failure.value
    for ours, theirs in _OUTWARD:
        if isinstance(error, ours):
            return Failure(theirs(str(error)))
    if isinstance(error, GridError | Violation):
        return failure
    log.failure("a remote call failed because of a bug", failure=failure)
    return Failure(_DEFECT("the server failed; its log says more"))


def from_remote(error: Exception, where: str) -> GridError:
    """The GridError for one of REMOTE_ERRORS. where: the peer's name in messages."""
    if isinstance(error, RemoteException):
        return _refusal(error.failure, where)
    if isinstance(error, Violation):
        return PeerError(f"{where} broke the protocol: {printable(str(error))}")
    if isinstance(error, _LOST):
        if isinstance(error, ConnectError | DNSLookupError):
            return PeerGoneError(
                f"{where} cannot be reached: {words_for(error)}", reason=words_for(error), server=where
            )
        return PeerGoneError(f"the connection to {where} was lost", reason="the connection was lost", server=where)
    text = printable(str(error))
    # A Foolscap node that is asked for another Tub answers so in its words of HTTP.
    reason = ANOTHER_NODE if "unknown TubID" in text else f"{words_for(error)}: {text}"
    return PeerGoneError(f"{where} cannot be reached: {reason}", reason=reason, server=where)


def _refusal(failure: Any, where: str) -> GridError:
    parents = getattr(failure, "parents", None) or ["unknown"]
    kind = printable(str(parents[0]).rpartition(".")[2])[:100]
    text = printable(str(failure.value))
    ours = _INWARD.get(kind)
    if ours is not None:
        return ours(f"{where}: {text}")
    return PeerRefusedError(f"{where} refused: {kind}: {text}", kind=kind)


def printable(text: str) -> str:
    """Hostile text for a message: shortened, and without control characters."""
    return "".join(character if character.isprintable() else " " for character in text[:MAX_REMOTE_TEXT])
