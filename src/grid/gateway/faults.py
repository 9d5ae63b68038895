"""Errors as clients of the gateway see them: a status, a form and one line. Pure. [spec webapi 1.6]

Owns the mapping from errors to statuses. A message never contains a traceback, a capability or a URL.
"""

from __future__ import annotations

import re
from typing import Literal

from grid.errors import (
    AuthorityError,
    BusyError,
    CapError,
    ChildOfWrongTypeError,
    ConflictError,
    DamagedFileError,
    DataTooLargeError,
    ExistingChildError,
    FormatError,
    GridError,
    HoleError,
    IntegrityError,
    MayHoldError,
    MustBeDeepImmutableError,
    MustBeReadOnlyError,
    MustForceRepairError,
    NoServersError,
    NoSpaceError,
    NoSuchChildError,
    NotEnoughSharesError,
    NotHappyError,
    NotWriteableError,
    PeerError,
    UnknownWriteCapError,
)

Shape = Literal["plain", "page", "json"]
"""plain: a line of text. page: an HTML page. json: an object with the message. [spec webapi 1.6]"""

Headers = tuple[tuple[str, str], ...]

_SECRETS = re.compile(r"(?:URI(?::|%3[Aa])|priv-v0-|x-(?:pc|ac)|pb(?:\+tor)?://|https?://)[^\s'\"()<>,]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+")


class HttpFault(GridError):
    """A request that fails: the HTTP status and one line that says why."""

    status = 500

    def __init__(
        self, message: str, *, shape: Shape = "plain", headers: Headers = (), known_as: str = "", kind: str = ""
    ) -> None:
        """known_as, kind: the names by which 1.20's clients recognize the error, on a line of its own or in front of
        the message.
        """
        self.message = without_secrets(message)
        super().__init__(f"{kind}: {self.message}" if kind else self.message)
        self.shape: Shape = shape
        self.headers = headers
        self.known_as = known_as

    @property
    def words(self) -> str:
        """What a page says to people."""
        return self.message


class BadRequest(HttpFault):
    """400: the request is malformed, or asks for something that does not exist."""

    status = 400


class Unauthorized(HttpFault):
    """401: the request needs the node's token."""

    status = 401


class Forbidden(HttpFault):
    """403: the request is understood and refused."""

    status = 403


class NotFound(HttpFault):
    """404: nothing exists at this address."""

    status = 404


class NoSuchChild(NotFound):
    """404: a directory has no entry of this name. Programs know the message; pages say it in plain words.

    depth: how many names at the end of the address lead to nothing.
    """

    def __init__(self, name: str, depth: int = 1) -> None:
        super().__init__(f"No such child: {name}", shape="page")
        self.name = without_secrets(name)
        self.depth = depth

    @property
    def words(self) -> str:
        """See HttpFault."""
        return f"There is nothing named “{self.name}” in this directory"


class MethodNotAllowed(HttpFault):
    """405: the resource does not support this method; `Allow` lists those that it does."""

    status = 405


class RequestTimeout(HttpFault):
    """408: the request arrives too slowly."""

    status = 408


class Conflict(HttpFault):
    """409: the request conflicts with the current state."""

    status = 409


class Gone(HttpFault):
    """410: not enough shares are available."""

    status = 410


class PreconditionFailed(HttpFault):
    """412: the request assumes something that is not so."""

    status = 412


class PayloadTooLarge(HttpFault):
    """413: the body is larger than the limit."""

    status = 413


class UnsupportedType(HttpFault):
    """415: the body has another type than is accepted here."""

    status = 415


class RangeNotSatisfiable(HttpFault):
    """416: the range starts past the end."""

    status = 416


class MisdirectedRequest(HttpFault):
    """421: the Host is not a name of this gateway."""

    status = 421


class TooManyRequests(HttpFault):
    """429: the limit on concurrent requests is reached."""

    status = 429


class InternalError(HttpFault):
    """500: a bug in Grid; the log has the details."""


class NotImplementedHere(HttpFault):
    """501: the method or a header is not supported for this resource."""

    status = 501


class ServiceUnavailable(HttpFault):
    """503: the grid, not the request, is at fault."""

    status = 503


class InsufficientStorage(HttpFault):
    """507: a disk is full."""

    status = 507


def without_secrets(text: str) -> str:
    """Return the text on one line, with capabilities, FURLs, keys and addresses removed."""
    return _SECRETS.sub("...", _CONTROL.sub(" ", text))


def fault_of(error: GridError, *, shape: Shape = "plain") -> HttpFault:
    """Translate an error of the engines into the fault that a client sees."""
    match error:
        case HttpFault():
            return error
        case NotEnoughSharesError():
            return Gone(str(error), shape=shape, kind=_shares_kind(error))
        case DamagedFileError() | IntegrityError():
            return Gone(str(error), shape=shape, kind="UnrecoverableFileError")
        case NoServersError() | NotHappyError() | PeerError() | BusyError():
            name = _GRID_ERRORS.get(type(error), type(error).__name__)
            advice = "; repair it once more servers take shares" if isinstance(error, MayHoldError) else ""
            return ServiceUnavailable(f"{error}{advice}", shape=shape, kind=name)
        case NoSuchChildError():
            return NoSuchChild(error.name)
        case ConflictError():
            return Conflict(str(error), shape=shape, known_as="UncoordinatedWriteError")
        case ExistingChildError() | ChildOfWrongTypeError() | MustForceRepairError():
            return Conflict(str(error), shape=shape)
        case NotWriteableError() | AuthorityError():
            return Forbidden(str(error), shape=shape, kind="NotWriteableError")
        case CapError() | FormatError() | HoleError():
            return BadRequest(str(error), shape=shape, kind=_CAP_ERRORS.get(type(error), ""))
        case DataTooLargeError():
            return PayloadTooLarge(str(error), shape=shape, kind="FileTooLargeError")
        case NoSpaceError():
            return InsufficientStorage(str(error), shape=shape)
        case _:
            return InternalError(str(error), shape=shape, kind=type(error).__name__)


_GRID_ERRORS: dict[type[GridError], str] = {NotHappyError: "UploadUnhappinessError"}

_CAP_ERRORS: dict[type[GridError], str] = {
    MustBeDeepImmutableError: "MustBeDeepImmutableError",
    MustBeReadOnlyError: "MustBeReadonlyError",
    UnknownWriteCapError: "MustNotBeUnknownRWError",
}
"""The names with which 1.20 begins these lines."""


def _shares_kind(error: NotEnoughSharesError) -> str:
    return "NotEnoughSharesError" if error.found else "NoSharesError"
