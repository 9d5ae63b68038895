"""Clients that open connections and are of no use, over blocking sockets; one function for each kind.

They need no answer and expect to be cut off; what counts is whether somebody else is served meanwhile.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from attrs import define, field

_CLIENT_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
_PATIENCE_S = 60.0


@define
class Hostile:
    """Some connections. drip: bytes that each sends again and again, if any."""

    sockets: list[socket.socket] = field(factory=list)
    drip: bytes = b""

    def poke(self) -> None:
        """Send another byte on each connection that is still there."""
        for one in self.sockets if self.drip else ():
            with suppress(OSError, ValueError):
                one.sendall(self.drip)

    def close(self) -> None:
        """Hang up."""
        for one in self.sockets:
            with suppress(OSError):
                one.close()


Open = Callable[[], socket.socket]


def hostile(count: int, opened: Open, drip: bytes = b"") -> Hostile:
    """That many of them; those that are cut off while they begin are gone."""
    found = Hostile(drip=drip)
    for _ in range(count):
        with suppress(OSError, ValueError):
            found.sockets.append(opened())
    return found


def plainly(port: int, start: bytes = b"", *, unread: bool = False) -> Open:
    """A TCP connection that says so much. unread: with hardly any room for an answer."""

    def opened() -> socket.socket:
        one = socket.socket()
        if unread:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.settimeout(_PATIENCE_S)
        try:
            one.connect(("127.0.0.1", port))
            one.sendall(start)
        except OSError:
            one.close()
            raise
        return one

    return opened


@cache
def any_certificate() -> ssl.SSLContext:
    """TLS that believes any server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def over_tls(port: int, start: bytes = b"", *, unread: bool = False) -> Open:
    """The same over TLS."""

    def opened() -> socket.socket:
        return _wrapped(plainly(port, unread=unread)(), start, any_certificate())

    return opened


def half_a_handshake(port: int) -> Open:
    """A TLS handshake that begins and never continues."""
    return plainly(port, _CLIENT_HELLO)


def switched(port: int, tub_id: str, *, tls: bool = False, hello: bytes = b"") -> Open:
    """A Foolscap negotiation as far as the switch to TLS, or, with tls, as far as so much of the first block."""

    def opened() -> socket.socket:
        request = f"GET /id/{tub_id} HTTP/1.1\r\nHost: x\r\nUpgrade: TLS/1.0\r\nConnection: Upgrade\r\n\r\n"
        one = plainly(port, request.encode())()
        answer = b""
        try:
            while b"\r\n\r\n" not in answer:
                more = one.recv(1)  # No more: what follows is TLS.
                if not more:
                    raise ConnectionError("closed in the middle of a negotiation")
                answer += more
        except OSError:
            one.close()
            raise
        return _wrapped(one, hello, any_certificate()) if tls else one

    return opened


def _wrapped(plain: socket.socket, start: bytes, context: ssl.SSLContext) -> ssl.SSLSocket:
    try:
        one = context.wrap_socket(plain)
        one.sendall(start)
    except (OSError, ValueError):
        plain.close()
        raise
    return one


class Flood:
    """Some hundred connections a second without end, each of them silent, until it is closed.

    An unbounded rate would measure how the machine shares its processors between the flood, the server and the honest client.
    """

    _PAUSE_S = 0.002

    def __init__(self, opened: Open, kept: int) -> None:
        """kept: how many of the last ones stay open on this side."""
        self._opened = opened
        self._kept = kept
        self._held: list[socket.socket] = []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.count = 0
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._ends.set()
        self._thread.join()
        for one in self._held:
            one.close()

    def _run(self) -> None:
        while not self._ends.is_set():
            with suppress(OSError, ValueError):
                self._held.append(self._opened())
                self.count += 1
            if len(self._held) > self._kept:
                self._held.pop(0).close()
            time.sleep(self._PAUSE_S)
