"""Translates the errors of object stores to those of ends; stores' own messages are long and quote whole requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from grid.errors import ConfigError
from grid.transfer.ends import EndError, NoBucketError, NotThereError, PassingError, SourceChangedError

_KEY_PROBLEM = re.compile(
    "InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|TokenRefreshRequired"
    "|AuthenticationFailed|InvalidAuthenticationInfo|failed to authenticate"
)
_NO_BUCKET = re.compile("NoSuchBucket|ContainerNotFound|no bucket named")
_WRONG_KEY = re.compile(r'invalid path: (?:Error parsing )?Path "(.*?)"(?: contained|: Encountered)', re.DOTALL)
_STATUS = re.compile(r"status code: ([0-9]{3})")
_UNKNOWN = "the server does not accept these credentials, or they have expired"
_PASSING = (408, 425, 429)
"""Statuses after which retrying may help."""


class OddKeyError(EndError):
    """A key in a listing is no path."""


@contextmanager
def as_end_errors(shown: str) -> Iterator[None]:
    """Translate obstore's errors."""
    from obstore import exceptions

    try:
        yield
    except (FileNotFoundError, exceptions.NotFoundError):
        raise NotThereError(f"{shown}: there is no such object, or no such bucket") from None
    except (exceptions.PreconditionError, exceptions.NotModifiedError):
        raise SourceChangedError(f"{shown} changed since it was listed") from None
    except exceptions.UnauthenticatedError:
        raise EndError(f"{shown}: {_UNKNOWN}") from None
    except exceptions.PermissionDeniedError as error:
        if _KEY_PROBLEM.search(str(error)):
            raise of_generic(shown, str(error)) from None
        raise EndError(f"{shown}: these credentials do not permit it") from None
    except exceptions.GenericError as error:
        raise of_generic(shown, str(error)) from None
    except exceptions.BaseError as error:
        if wrong := _WRONG_KEY.search(str(error)):
            what = f"the key {wrong[1]!r} is no path: rename that object, or name a prefix without it"
            raise OddKeyError(f"{shown}: {what}") from None
        raise EndError(f"{shown}: {_short(str(error))}") from None


@contextmanager
def as_settings_errors(shown: str) -> Iterator[None]:
    """Translate what obstore says of its arguments, most of which come from the environment."""
    from obstore import exceptions

    try:
        yield
    except exceptions.BaseError as error:
        if "Account must be specified" in str(error):
            what = "set AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING, which name the storage account"
            raise ConfigError(f"{shown}: {what}") from None
        reason = re.sub("^Generic [A-Za-z0-9]+ error: ", "", _short(str(error)))
        raise ConfigError(f"{shown}: its account cannot be used: {reason}") from None


def of_generic(shown: str, text: str) -> EndError:
    """Classify the client's generic errors: statuses, lost connections, and malformed answers."""
    if problem := _KEY_PROBLEM.search(text):
        return EndError(f"{shown}: the server does not accept these credentials ({problem[0]})")
    if _NO_BUCKET.search(text):
        return NoBucketError(f"{shown}: there is no such {'container' if shown.startswith('az:') else 'bucket'}")
    found = _STATUS.search(text)
    status = int(found[1]) if found else 0
    if status in (401, 403):
        return EndError(f"{shown}: {_UNKNOWN if status == 401 else 'these credentials do not permit it'}")
    if 300 <= status < 400 or "redirect without LOCATION" in text:
        return EndError(f"{shown}: the server redirects; set the region or the endpoint of the bucket")
    if 400 <= status < 500 and status not in _PASSING:
        return EndError(f"{shown}: the server refused: {_short(text)}")
    if "error sending request" in text:
        return PassingError(f"{shown}: the server cannot be reached, or the connection was lost")
    return PassingError(f"{shown}: {_short(text)}")


def _short(text: str) -> str:
    """The reason alone, without the quoted request and internal values: the server's own, if it sent one."""
    text = text.partition("Debug source:")[0]
    if reason := _reason(text):
        return reason[:200]
    return " ".join((text.partition(" - ")[2] or text).split())[:200]


def _reason(text: str) -> str:
    """Code and message of an answer in XML. Azure's message has further lines, about the request."""
    found = (re.search(f"<{name}>([^<>]*)</{name}>", text) for name in ("Code", "Message"))
    return ": ".join(part[1].strip().partition("\n")[0] for part in found if part is not None)


def of_answer(shown: str, status: int, text: str) -> EndError:
    """The error of an answer to a request of our own. text: its body."""
    return of_generic(shown, f"status code: {status} - {_reason(text) or status}")
