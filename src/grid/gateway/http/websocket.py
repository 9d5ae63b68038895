"""WebSockets that send messages to clients: the handshake and the sending; wsproto speaks the protocol. [spec webapi
9.6]

Only pings and closing frames are read from clients; one that sends much more is disconnected.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Awaitable, Callable

from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Message, Ping, TextMessage
from wsproto.utilities import LocalProtocolError, RemoteProtocolError, generate_accept_token

from grid.gateway.faults import BadRequest
from grid.gateway.http.answers import StreamedAnswer
from grid.gateway.http.exchange import Exchange
from grid.ports import Sink
from grid.values import field, frozen

_WORDS = re.compile(r"[\s,]+")

MAX_FROM_CLIENT = 65536
"""Bytes that a client may send in all; pings and a closing frame are small and few."""

NextMessage = Callable[[], Awaitable[str | None]]
"""Returns the next message, "" if there is none yet, None at the end."""


@frozen(kw_only=True)
class SwitchingAnswer(StreamedAnswer):
    """An answer after which the connection no longer speaks HTTP.

    receive: called with all further bytes from the client.
    """

    receive: Callable[[bytes], None] = field(repr=False)


def accept(
    exchange: Exchange, next_message: NextMessage, nudge: Callable[[], None], ended: Callable[[], None]
) -> SwitchingAnswer:
    """Accept a WebSocket handshake and send every message; BadRequest if the request is not a handshake.

    nudge: makes next_message return soon, because a reply to the client is due. ended: makes it return None, because
    the client closed the WebSocket.
    """
    get = exchange.headers.get
    key = (get("sec-websocket-key") or "").strip()
    words = _WORDS.split((get("connection") or "").lower())
    if exchange.method != "GET" or (get("upgrade") or "").lower() != "websocket" or "upgrade" not in words:
        raise BadRequest("this address is a WebSocket; send an upgrade request", headers=(("Upgrade", "websocket"),))
    if (get("sec-websocket-version") or "").strip() != "13" or not _is_key(key):
        raise BadRequest(
            "only version 13 of the WebSocket protocol is supported, with a key of 16 bytes",
            headers=(("Sec-WebSocket-Version", "13"),),
        )
    digest = generate_accept_token(key.encode("ascii")).decode("ascii")
    sender = _Sender(next_message, nudge, ended)
    headers = (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", digest))
    return SwitchingAnswer(
        status=101, content_type="", size=None, headers=headers, write=sender.send_all, receive=sender.receive
    )


class _Sender:
    def __init__(self, next_message: NextMessage, nudge: Callable[[], None], ended: Callable[[], None]) -> None:
        self._connection = Connection(ConnectionType.SERVER)
        self._next_message = next_message
        self._nudge = nudge
        self._ended = ended
        self._replies: list[bytes] = []
        self._received = 0
        self._has_closed = False

    def receive(self, data: bytes) -> None:
        """Answer pings and the closing frame."""
        self._received += len(data)
        if self._has_closed:
            return
        try:
            if self._received > MAX_FROM_CLIENT:
                raise RemoteProtocolError("the client sends too much")
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

    async def send_all(self, sink: Sink) -> None:
        """Send every message until the end."""
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
