"""`/uploads`: uploads that continue where they broke off, over the tus protocol 1.0.0. [spec webapi 4.9]

A client announces a file's size, sends its bytes in as many requests as it takes, and then links the file by
`PUT /uri/$DIR/PATH?upload=ID`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime

from grid.caps import KnownCap
from grid.gateway.faults import (
    BadRequest,
    Conflict,
    HttpFault,
    MethodNotAllowed,
    NotFound,
    PreconditionFailed,
    UnsupportedType,
)
from grid.gateway.files.file_changes import new_file, store_form_file
from grid.gateway.http.answers import Answer, AnyAnswer
from grid.gateway.http.exchange import Exchange
from grid.gateway.http.routing import Handler, allow
from grid.gateway.shared.resumable_uploads import ResumableUpload
from grid.gateway.shared.spool import Spool
from grid.values import frozen

VERSION = "1.0.0"
EXTENSIONS = "creation,expiration,termination"

MAX_SIZE = 2**50
"""Bytes of a file. The disk that spools it sets the practical limit."""

_RESUMABLE = ("Tus-Resumable", VERSION)
_TYPE = "application/offset+octet-stream"


def routes() -> Mapping[str, Handler]:
    """Handlers by first segment."""
    return {"uploads": uploads}


async def uploads(exchange: Exchange) -> AnyAnswer:
    """`/uploads[/ID]`."""
    try:
        return await _answer(exchange)
    except HttpFault as fault:
        fault.headers = (*fault.headers, _RESUMABLE)
        raise


async def _answer(exchange: Exchange) -> Answer:
    _, *rest = exchange.segments
    if not any(rest):
        allow(exchange, "POST", "OPTIONS")
        if exchange.method == "OPTIONS":
            more = ("Tus-Version", VERSION), ("Tus-Extension", EXTENSIONS), ("Tus-Max-Size", str(MAX_SIZE))
            return _empty(204, *more)
        _require_version(exchange)
        return await _create(exchange)
    if len(rest) > 1:
        raise NotFound("there is no such upload")
    method = exchange.method
    if method == "POST":  # Browsers and proxies that know no PATCH send POST and name it.
        method = (exchange.headers.get("x-http-method-override") or method).upper()
    act = _METHODS.get(method)
    if act is None:
        raise MethodNotAllowed(
            "this resource does not support that method", headers=(("Allow", "HEAD, PATCH, DELETE"),)
        )
    _require_version(exchange)
    return await act(exchange, rest[0])


def _require_version(exchange: Exchange) -> None:
    if exchange.headers.get("tus-resumable") != VERSION:
        versions = (("Tus-Version", VERSION),)
        raise PreconditionFailed(f"send Tus-Resumable: {VERSION}, the version spoken here", headers=versions)


async def _create(exchange: Exchange) -> Answer:
    size = _number(exchange, "Upload-Length")
    if size > MAX_SIZE:
        raise BadRequest(f"Upload-Length is over {MAX_SIZE}")
    uploads = exchange.gateway.uploads
    identifier = await uploads.create(size)
    with uploads.using(identifier) as upload:
        pass
    return _empty(201, ("Location", f"{exchange.origin}/uploads/{identifier}"), _expires(upload))


async def _state(exchange: Exchange, identifier: str) -> Answer:
    uploads = exchange.gateway.uploads
    with uploads.using(identifier) as upload:
        await uploads.interrupt(upload)
    return _empty(200, _offset(upload), ("Upload-Length", str(upload.size)), _expires(upload))


async def _append(exchange: Exchange, identifier: str) -> Answer:
    uploads, body = exchange.gateway.uploads, exchange.body
    if body.content_type.partition(";")[0].strip().lower() != _TYPE:
        raise UnsupportedType(f"the Content-Type of uploaded bytes must be {_TYPE}")
    offset = _number(exchange, "Upload-Offset")
    with uploads.using(identifier) as upload:

        def stop() -> None:
            body.fail(Conflict("another request has taken over this upload"))

        await uploads.append(upload, offset, body.chunks(), stop)
    return _empty(204, _offset(upload), _expires(upload))


async def _discard(exchange: Exchange, identifier: str) -> Answer:
    with exchange.gateway.uploads.using(identifier):
        exchange.gateway.uploads.release(identifier)
    return _empty(204)


_METHODS: Mapping[str, Callable[[Exchange, str], Awaitable[Answer]]] = {
    "HEAD": _state,
    "PATCH": _append,
    "DELETE": _discard,
}


@frozen
class ResumedFile:
    """The complete bytes of an upload, in place of a request's body."""

    _exchange: Exchange
    _spool: Spool

    async def cap(self) -> KnownCap:
        """Store them as a new file."""
        return await store_form_file(self._exchange, new_file(self._exchange), self._spool)

    def take_back(self) -> Spool:
        """The bytes."""
        return self._spool


def resumed_file(exchange: Exchange, upload: ResumableUpload) -> ResumedFile:
    """The file of a complete upload; Conflict if bytes are missing."""
    if not upload.is_complete:
        raise Conflict(f"the upload has {upload.spool.size} of {upload.size} bytes")
    return ResumedFile(exchange, upload.spool)


def _number(exchange: Exchange, name: str) -> int:
    text = (exchange.headers.get(name) or "").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise BadRequest(f"{name} must be a whole number")
    return int(text)


def _empty(status: int, *headers: tuple[str, str]) -> Answer:
    return Answer(status, "", headers=(_RESUMABLE, ("Cache-Control", "no-store"), *headers))


def _offset(upload: ResumableUpload) -> tuple[str, str]:
    return "Upload-Offset", str(upload.spool.size)


def _expires(upload: ResumableUpload) -> tuple[str, str]:
    return "Upload-Expires", format_datetime(datetime.fromtimestamp(upload.expires_at, UTC), usegmt=True)
