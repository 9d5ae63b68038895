"""WebSockets that only tell: the handshake, and messages from here. [spec webapi 9.6]

What the client sends is not read, but for its pings and its goodbye; a client that sends more than those is cut.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Awaitable, Callable
from hashlib import sha1

from attrs import field, frozen
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Message, Ping, TextMessage
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from grid.gateway.faults import BadRequest
from grid.gateway.http.answers import StreamedAnswer
from grid.gateway.http.exchange import Exchange
from grid.ports import Sink

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_WORDS = re.compile(r"[\s,]+")

MAX_FROM_CLIENT = 65536
"""Bytes that a client may send in all: pings and a goodbye are small, and few."""

NextMessage = Callable[[], Awaitable[str | None]]
"""What is to be said next; "" if there is nothing now, None when it is over."""


@frozen(kw_only=True)
class SwitchingAnswer(StreamedAnswer):
    """An answer after which the connection is no longer HTTP. receive: told what the client sends from then on."""

    receive: Callable[[bytes], None] = field(repr=False)


def accept(
    exchange: Exchange, next_message: NextMessage, nudge: Callable[[], None], ended: Callable[[], None]
) -> SwitchingAnswer:
    """The answer that opens the WebSocket and says every message; BadRequest if the request asks for none.

    nudge: next_message has to return soon, as the client waits for a reply. ended: it has to return None, as the client
    said goodbye.
    """
    get = exchange.headers.get
    key = (get("sec-websocket-key") or "").strip()
    words = _WORDS.split((get("connection") or "").lower())
    if exchange.method != "GET" or (get("upgrade") or "").lower() != "websocket" or "upgrade" not in words:
        raise BadRequest("this is a WebSocket", headers=(("Upgrade", "websocket"),))
    if (get("sec-websocket-version") or "").strip() != "13" or not _is_key(key):
        raise BadRequest("only version 13 of WebSocket is known here", headers=(("Sec-WebSocket-Version", "13"),))
    digest = b64encode(sha1(key.encode("ascii") + _GUID, usedforsecurity=False).digest()).decode("ascii")
    speaker = _Speaker(next_message, nudge, ended)
    headers = (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", digest))
    return SwitchingAnswer(
        status=101, content_type="", size=None, headers=headers, write=speaker.speak, receive=speaker.hear
    )


class _Speaker:
    def __init__(self, next_message: NextMessage, nudge: Callable[[], None], ended: Callable[[], None]) -> None:
        self._connection = Connection(ConnectionType.SERVER)
        self._next_message = next_message
        self._nudge = nudge
        self._ended = ended
        self._replies: list[bytes] = []
        self._received = 0
        self._has_closed = False

    def hear(self, data: bytes) -> None:
        """What the client sends."""
        self._received += len(data)
        if self._has_closed:
            return
        try:
            if self._received > MAX_FROM_CLIENT:
                raise RemoteProtocolError("the client talks too much")
            self._connection.receive_data(data)
            for event in self._connection.events():
                match event:
                    case Ping():
                        self._replies.append(self._connection.send(event.response()))
                        self._nudge()
                    case CloseConnection():
                        self._replies.append(self._connection.send(event.response()))
                        self._close()
                    case Message():
                        pass
        except (RemoteProtocolError, LocalProtocolError):
            self._close()

    async def speak(self, sink: Sink) -> None:
        """Say everything until it is over."""
        await sink.write(b"")
        while not self._has_closed:
            text = await self._next_message()
            await self._flush(sink)
            if text is None:
                break
            if text and not self._has_closed:
                await sink.write(self._connection.send(TextMessage(data=text)))
        await self._flush(sink)
        if not self._has_closed:
            await sink.write(self._connection.send(CloseConnection(code=1001)))

    async def _flush(self, sink: Sink) -> None:
        replies, self._replies = self._replies, []
        for reply in replies:
            await sink.write(reply)

    def _close(self) -> None:
        self._has_closed = True
        self._ended()


def _is_key(key: str) -> bool:
    try:
        return len(b64decode(key, validate=True)) == 16
    except (Base64Error, ValueError):
        return False
