"""Where one request ends and the next begins: what Twisted leaves open of that, refused with an answer. [spec webapi 1.1]

Two programs that disagree on a request's length can be made to disagree on what is a request: there is one way here to
say it. A refusal is an answer that can be read: what is still on its way is taken for a while, as closing over it would
throw the answer away on the client's side.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from twisted.web import http

from grid.gateway.http.answers import COMMON, SANDBOX
from grid.limits import GATEWAY_DISCARDED

_MOST_DIGITS = 19
"""Of a body's length: no file has as many bytes as a number with more of them."""

_LINGER_S = 5.0
"""How long what follows a refused head may go on."""


class FramedChannel(http.HTTPChannel):
    """A connection whose requests have one length each, or are refused."""

    transport: Any

    def __init__(self) -> None:
        super().__init__()
        self._is_refused = False
        self._dropped = 0

    def dataReceived(self, data: bytes) -> None:
        """More from the client; of one that was refused, nothing that anybody reads."""
        if not self._is_refused:
            super().dataReceived(data)
            return
        self._dropped += len(data)
        if self._dropped > GATEWAY_DISCARDED:
            self.transport.abortConnection()

    def lineReceived(self, line: bytes) -> None:
        """A line of a head."""
        if not self._is_refused:
            super().lineReceived(line)

    def rawDataReceived(self, data: bytes) -> None:
        """Some of a body, or of what follows it."""
        if not self._is_refused:
            super().rawDataReceived(data)

    def headerReceived(self, line: bytes) -> bool:
        """A field of the head; whether the request may go on."""
        name, _, value = line.partition(b":")
        value = value.strip(b" \t")
        match name.lower():
            case b"content-length" if value.isdigit() and len(value) > _MOST_DIGITS:
                self.refuse(413, "no body is as long as Content-Length says")
                return False
            case b"transfer-encoding" if value.lower() != b"chunked":
                self.refuse(501, "the only Transfer-Encoding known here is chunked")
                return False
            case b"transfer-encoding" if self._version != b"HTTP/1.1":
                self.refuse(400, "HTTP/1.0 has no Transfer-Encoding")
                return False
        return bool(super().headerReceived(line))

    def lineLengthExceeded(self, line: bytes) -> None:
        """A line of the head does not end."""
        if self.requests and getattr(self.requests[-1], "body", None) is None:
            self.refuse(431, "a header is too long")
        else:
            self.refuse(414, "the address is too long")

    def refuse(self, status: int, text: str) -> None:
        """Answer with this and end the connection, once the client has had time to read it."""
        if self._is_refused:
            return
        self._is_refused = True
        self.persistent = False
        if any(request.startedWriting for request in self.requests):
            self.transport.abortConnection()  # In the midst of an answer nothing can be said.
            return
        body = f"{text}\n".encode("ascii")
        fields = (
            *COMMON,
            *SANDBOX,
            ("Connection", "close"),
            ("Content-Type", "text/plain;charset=utf-8"),
            ("Content-Length", len(body)),
        )
        lines = (f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in fields))
        self.transport.write("\r\n".join((*lines, "", "")).encode("ascii") + body)
        self.setTimeout(_LINGER_S)

    def _respondToBadRequestAndDisconnect(self) -> None:
        """What Twisted makes of a head or a chunk that it cannot read."""
        if self._receivedHeaderSize > self.totalHeadersSize or self._receivedHeaderCount > self.maxHeaders:
            self.refuse(431, "the headers are too long, or too many")
        else:
            self.refuse(400, "this is no HTTP that could be understood here")
