"""Translates a gateway's refusal, a status and a text, to the error that a direct command would raise. Pure.

The text is untrusted: it is truncated, flattened, and stripped of everything that looks like a capability or a URL.
[spec webapi 1.6]
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable

from grid.errors import (
    AuthorityError,
    ConflictError,
    DataTooLargeError,
    ExistingChildError,
    GridError,
    MayHoldError,
    MustBeDeepImmutableError,
    MustBeReadOnlyError,
    NoServersError,
    NoSpaceError,
    NoSuchChildError,
    NotEnoughSharesError,
    NotHappyError,
    NotWriteableError,
    PeerTimeoutError,
    UnknownWriteCapError,
)
from grid.node.redaction import one_line

MAX_SHOWN = 300
MAX_REFUSAL_TEXT = 16 * 1024
"""Bytes examined of an error's body."""

_URLS = re.compile(r"\bhttps?://[^\s'\"()<>,]*")
_TAGS = re.compile(r"<(?:script|style|title|head)\b.*?</(?:script|style|title|head)\s*>|<[^>]{0,1000}>", re.S | re.I)
_REASON = re.compile(r"<h1\b[^>]{0,200}>[^<]{0,200}</h1>\s*<p\b[^>]{0,200}>(.*?)</p>", re.S | re.I)
_UNHAPPY = re.compile(r"on (?:only )?([0-9]{1,3}) server.{1,200}?on at least ([0-9]{1,3}) ")
_NAMED = re.compile(r"\b([A-Z][A-Za-z]{3,40}(?:Error|Exception))\b")


class GatewayError(GridError):
    """The gateway did not do what it was asked, or sent an invalid answer."""


def _shares(text: str) -> GridError:
    return NotEnoughSharesError(text, found=0, needed=1)


def _unhappy(text: str) -> GridError:
    """The error with the numbers from 1.20's message, if that has the known form."""
    found = _UNHAPPY.search(text)
    if found is None:
        return NoServersError(text)
    return NotHappyError(text, reached=int(found[1]), happy=int(found[2]))


_BY_NAME: dict[str, Callable[[str], GridError]] = {
    "NotEnoughSharesError": _shares,
    "NoSharesError": _shares,
    "UnrecoverableFileError": _shares,
    "NoServersError": NoServersError,
    "NotEnoughServersError": NoServersError,
    "UploadUnhappinessError": _unhappy,
    "MayHoldError": MayHoldError,
    "PeerGoneError": NoServersError,
    "PeerTimeoutError": PeerTimeoutError,
    "NoSpaceError": NoSpaceError,
    "NotWriteableError": NotWriteableError,
    "AuthorityError": AuthorityError,
    "MustBeDeepImmutableError": MustBeDeepImmutableError,
    "MustBeReadonlyError": MustBeReadOnlyError,
    "MustNotBeUnknownRWError": UnknownWriteCapError,
    "UncoordinatedWriteError": ConflictError,
    "FileTooLargeError": DataTooLargeError,
}

_BY_STATUS: dict[int, Callable[[str], GridError]] = {
    401: AuthorityError,
    403: AuthorityError,
    404: lambda text: NoSuchChildError(text, name=""),
    409: lambda text: ExistingChildError(text, name=""),
    408: PeerTimeoutError,
    410: _shares,
    413: DataTooLargeError,
    502: NoServersError,
    503: NoServersError,
    504: PeerTimeoutError,
    507: NoSpaceError,
}


def refusal(status: int, body: bytes, conflict: Callable[[str], GridError] | None = None) -> GridError:
    """The error for an answer with this status and body. conflict: translates status 409 for this request."""
    text = readable_text(body)
    if 300 <= status < 400:
        return GatewayError(f"the gateway redirects (HTTP {status}), which is not followed; is its URL right?")
    said = f"the gateway: {text or 'no reason given'} (HTTP {status})"
    make = _by_name(body)
    if make is None and status == 409 and conflict is not None:
        make = conflict
    return (make or _BY_STATUS.get(status, GatewayError))(said)


def stream_error(line: bytes) -> GridError:
    """The error for a line `ERROR: TYPE(MESSAGE)` of a stream. [spec webapi 7.3]"""
    text = readable_text(line.removeprefix(b"ERROR:"))
    return (_by_name(line) or GatewayError)(f"the gateway: {text or 'no reason given'}")


def readable_text(body: bytes) -> str:
    """One short line for people, without control characters, capabilities and URLs."""
    text = body[:MAX_REFUSAL_TEXT].decode("utf-8", "replace")
    if text.lstrip().startswith("{"):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, dict) and isinstance(document.get("error"), str):
            text = document["error"]
    if text.lstrip().startswith("<"):
        told_on_page = _REASON.search(text)
        text = html.unescape(_TAGS.sub(" ", told_on_page[1] if told_on_page else text))
    if "Traceback (most recent call last)" in text:
        lines = [line for line in text.strip().splitlines() if line.strip()]
        text = next((line for line in reversed(lines) if _NAMED.search(line)), lines[-1])
    text = " ".join(_URLS.sub("...", one_line(text)).split())
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def _by_name(body: bytes) -> Callable[[str], GridError] | None:
    """The error for the last known exception name in the text, as in a traceback."""
    names = _NAMED.findall(body[-MAX_REFUSAL_TEXT:].decode("utf-8", "replace"))
    return next((_BY_NAME[name] for name in reversed(names) if name in _BY_NAME), None)
