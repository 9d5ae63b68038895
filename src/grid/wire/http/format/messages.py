"""The framing of HTTP/1.1 messages in both directions: heads, and the ends of bodies. [RFC 9112] Pure.

Strict where laxness is dangerous: one length or one chunked coding, no folded lines, no bare line feeds, heads
bounded by limits.py. Bodies pass through as the buffers they came in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, MutableSequence
from typing import Protocol

from grid.errors import FormatError
from grid.limits import MAX_HTTP_HEAD, MAX_HTTP_HEADERS
from grid.ports import Buffer
from grid.values import field, frozen

Headers = Mapping[bytes, list[bytes]]
"""Values by lower-case header name, in the order received."""

HEAD_END = b"\r\n\r\n"

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TARGET = re.compile(rb"[\x21-\x7e]+")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\r\n]*)?")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")

REASONS = {
    200: b"OK",
    201: b"Created",
    204: b"No Content",
    206: b"Partial Content",
    400: b"Bad Request",
    401: b"Unauthorized",
    404: b"Not Found",
    405: b"Method Not Allowed",
    406: b"Not Acceptable",
    408: b"Request Timeout",
    409: b"Conflict",
    413: b"Content Too Large",
    415: b"Unsupported Media Type",
    416: b"Range Not Satisfiable",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    503: b"Service Unavailable",
    505: b"HTTP Version Not Supported",
    507: b"Insufficient Storage",
}


@frozen
class RequestHead:
    """The head of a request. The repr leaves out the headers, because they may contain secrets."""

    method: bytes
    target: bytes
    headers: Headers = field(repr=False)

    @property
    def wants_close(self) -> bool:
        """Whether the client wants to close the connection."""
        return _has_option(self.headers, b"close")


@frozen
class ResponseHead:
    """The head of a response. minor: of the sender's HTTP/1 version."""

    status: int
    headers: Headers
    minor: int = 1

    @property
    def wants_close(self) -> bool:
        """Whether the server wants to close the connection."""
        return self.minor == 0 or _has_option(self.headers, b"close")


def first_value(headers: Headers, name: bytes) -> bytes | None:
    """The header's value if the header occurs exactly once, otherwise None."""
    values = headers.get(name, ())
    return values[0] if len(values) == 1 else None


def parse_request_head(data: bytes) -> RequestHead:
    """Parse the head without its end; FormatError. The version must be HTTP/1.1."""
    line, headers = _parse_head(data)
    parts = line.split(b" ")
    if len(parts) != 3 or _TOKEN.fullmatch(parts[0]) is None or _TARGET.fullmatch(parts[1]) is None:
        raise FormatError("not the first line of an HTTP request")
    if parts[2] != b"HTTP/1.1":
        raise FormatError("a request of an HTTP version other than 1.1")
    return RequestHead(parts[0], parts[1], headers)


def parse_response_head(data: bytes) -> ResponseHead:
    """Parse the head without its end; FormatError."""
    line, headers = _parse_head(data)
    match = _STATUS.fullmatch(line)
    if match is None:
        raise FormatError("not the first line of an HTTP response")
    return ResponseHead(int(match[2]), headers, int(match[1]))


def _parse_head(data: bytes) -> tuple[bytes, dict[bytes, list[bytes]]]:
    if len(data) > MAX_HTTP_HEAD:
        raise FormatError(f"an HTTP head of more than {MAX_HTTP_HEAD} bytes")
    first, *lines = data.split(b"\r\n")
    if len(lines) > MAX_HTTP_HEADERS:
        raise FormatError(f"an HTTP head of more than {MAX_HTTP_HEADERS} lines")
    headers: dict[bytes, list[bytes]] = {}
    for line in lines:
        name, separator, value = line.partition(b":")
        if not separator or _TOKEN.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            raise FormatError("a malformed HTTP header line")
        headers.setdefault(name.lower(), []).append(value.strip(b" \t"))
    return first, headers


def _has_option(headers: Headers, option: bytes) -> bool:
    values = headers.get(b"connection")
    return values is not None and any(part.strip().lower() == option for value in values for part in value.split(b","))


def pack_head(first_line: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Pack a head with its end. The values are our own, and contain no line ends."""
    return b"".join((first_line, *(b"\r\n%b: %b" % header for header in headers), HEAD_END))


def pack_status_line(status: int) -> bytes:
    """The first line of a response."""
    return b"HTTP/1.1 %d %b" % (status, REASONS.get(status, b"Unknown"))


class BodyDecoder(Protocol):
    """Finds the end of a body in the data after its head."""

    @property
    def length(self) -> int | None:
        """Bytes of the whole body, if known in advance."""

    @property
    def awaited(self) -> int:
        """Bytes that must still come, as far as known: of the body, or of a part of it."""

    def decode(self, data: bytes) -> tuple[list[Buffer], bytes | None]:
        """The body's bytes in the data, and what follows the body once it has ended (None until then).

        FormatError if the framing is wrong. A call without data tells whether the body has ended already.
        """


class LengthDecoder:
    """A body of known length."""

    def __init__(self, length: int) -> None:
        self.length: int | None = length
        self._remaining = length

    @property
    def awaited(self) -> int:
        """See BodyDecoder."""
        return self._remaining

    def decode(self, data: bytes) -> tuple[list[Buffer], bytes | None]:
        """See BodyDecoder."""
        size = len(data)
        if size < self._remaining:
            self._remaining -= size
            return ([data] if size else []), None
        end, self._remaining = self._remaining, 0
        if size == end:
            return ([data] if size else []), b""
        return ([memoryview(data)[:end]] if end else []), data[end:]


class ChunkedDecoder:
    """A body in chunks that each have their length; trailers are dropped."""

    length: int | None = None

    def __init__(self) -> None:
        self._line = b""
        self._remaining = 0
        self._in_trailer = False
        self._after_chunk = False
        self._trailer_size = 0

    @property
    def awaited(self) -> int:
        """See BodyDecoder."""
        return self._remaining

    def decode(self, data: bytes) -> tuple[list[Buffer], bytes | None]:
        """See BodyDecoder."""
        pieces: list[Buffer] = []
        position, view = 0, memoryview(data)
        while position < len(data):
            if self._remaining:
                end = min(len(data), position + self._remaining)
                pieces.append(view[position:end])
                self._remaining -= end - position
                self._after_chunk = not self._remaining
                position = end
                continue
            line_end = data.find(b"\n", position)
            if line_end < 0:
                self._line += data[position:]
                self._require_short()
                break
            self._line += data[position : line_end + 1]
            self._require_short()
            position = line_end + 1
            if self._take_line():
                return pieces, data[position:]
        return pieces, None

    def _take_line(self) -> bool:
        """Handle a complete line. Returns whether it ended the body."""
        line, self._line = self._line, b""
        if not line.endswith(b"\r\n"):
            raise FormatError("a chunked body with a line that ends wrongly")
        line = line[:-2]
        if self._after_chunk:
            if line:
                raise FormatError("a chunk longer than it said")
            self._after_chunk = False
            return False
        if self._in_trailer:
            self._trailer_size += len(line)
            return not line
        match = _CHUNK_SIZE.fullmatch(line)
        if match is None:
            raise FormatError("a chunk without its length")
        self._remaining = int(match[1], 16)
        self._in_trailer = not self._remaining
        return False

    def _require_short(self) -> None:
        if len(self._line) + self._trailer_size > MAX_HTTP_HEAD:
            raise FormatError("a chunked body with an overlong line or trailer")


_SMALL_PIECE = 4096
"""Pieces of a body up to this size are joined: each piece costs up to 250 bytes besides its own."""


def keep_piece(pieces: MutableSequence[Buffer], piece: Buffer) -> None:
    """Add a piece to the waiting ones, joining it to the last one while both are small."""
    if pieces and len(pieces[-1]) + len(piece) <= _SMALL_PIECE:
        pieces[-1] = b"".join((pieces[-1], piece))
    else:
        pieces.append(piece)


class EndlessDecoder:
    """A response's body that lasts until the connection closes."""

    length: int | None = None
    awaited = 0

    def decode(self, data: bytes) -> tuple[list[Buffer], bytes | None]:
        """See BodyDecoder."""
        return ([data] if data else []), None


def request_body(headers: Headers) -> BodyDecoder:
    """The decoder for a request's body; no length header means no body. FormatError."""
    return _framed(headers) or LengthDecoder(0)


def response_body(head: ResponseHead) -> BodyDecoder:
    """The decoder for a response's body; no length header means until the connection closes. FormatError."""
    if head.status in (204, 304) or head.status < 200:
        return LengthDecoder(0)
    return _framed(head.headers) or EndlessDecoder()


def _framed(headers: Headers) -> BodyDecoder | None:
    coding = headers.get(b"transfer-encoding")
    lengths = headers.get(b"content-length")
    if coding is not None:
        if lengths is not None or len(coding) != 1 or coding[0].lower() != b"chunked":
            raise FormatError("an HTTP body whose end is given in two ways, or in an unknown one")
        return ChunkedDecoder()
    if lengths is None:
        return None
    if len(lengths) != 1 or _LENGTH.fullmatch(lengths[0]) is None:
        raise FormatError("an HTTP body whose length is not a number")
    return LengthDecoder(int(lengths[0]))


def pack_chunk_head(size: int) -> bytes:
    """The line before a chunk of that many bytes; CHUNK_END follows the chunk."""
    return b"%x\r\n" % size


CHUNK_END = b"\r\n"
LAST_CHUNK = b"0\r\n\r\n"
