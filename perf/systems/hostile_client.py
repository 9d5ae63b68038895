"""Hostile connections to a soak's own storage nodes and gateway: silent, incomplete, never read, or read slowly.

python -m perf.systems.hostile_client SECONDS MOST GATEWAY_URL NODE_DIRECTORY...

It keeps at most MOST connections open, each for some seconds, and ends after SECONDS or with its stdin. It reads the
nodes' own directories for what an authorized client knows, and contacts only nodes that listen on loopback.
"""

from __future__ import annotations

import base64
import contextlib
import random
import re
import select
import socket
import ssl
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import frozen

HELD_S = (1.0, 30.0)
"""The range of seconds that a connection is held."""

PACE_S = 0.1
CONNECT_S = 2.0

SIP = 2000
"""Bytes that a slow reader takes at a time, 20 kB/s in total."""

SLOW_FILE = 8 << 20
"""Bytes of the file that slow readers request from the gateway."""


class Node:
    """What is known of one storage node."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        configuration = (directory / "grid.cfg").read_text()
        found = re.search(r"^tub\.location = tcp:127\.0\.0\.1:(\d+)$", configuration, re.MULTILINE)
        if found is None:
            raise ValueError(f"{directory} does not listen on loopback")
        self.port = int(found[1])
        furl = (directory / "private" / "storage.furl").read_text().strip()
        self.tub_id = furl.removeprefix("pb://").partition("@")[0]
        self._swissnum = furl.rpartition("/")[2]

    def connect(self) -> socket.socket:
        """Open a plain connection."""
        return socket.create_connection(("127.0.0.1", self.port), CONNECT_S)

    def connect_tls(self) -> ssl.SSLSocket:
        """Open a TLS connection, without verifying the node."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(self.connect())

    @property
    def authorization(self) -> bytes:
        """The header of an authorized client."""
        return b"Authorization: Tahoe-LAFS " + base64.b64encode(self._swissnum.encode()) + b"\r\n"

    def a_share(self, draw: random.Random) -> str:
        """Index and number of a share on the node, immutable or mutable, as in an address; empty if it has none."""
        shares = self._directory / "storage" / "shares"
        found = [path for path in shares.glob("??/*/*") if path.parent.parent.name != "incoming"]
        if not found:
            return ""
        path = draw.choice(found)
        return f"{path.parent.name}/{path.name}"


def say_nothing(node: Node, draw: random.Random) -> socket.socket:
    """Connect and send nothing."""
    return node.connect()


def stop_after_tls(node: Node, draw: random.Random) -> socket.socket:
    """Complete a TLS handshake and send nothing more."""
    return node.connect_tls()


def stop_in_tls(node: Node, draw: random.Random) -> socket.socket:
    """Send the beginning of a TLS handshake."""
    connection = node.connect()
    connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + draw.randbytes(8))
    return connection


def stop_in_head(node: Node, draw: random.Random) -> socket.socket:
    """Send half of a request's head."""
    connection = node.connect_tls()
    connection.sendall(b"GET /storage/v1/version HTTP/1.1\r\nHost: x\r\nX-Long: ")
    return connection


def stop_in_body(node: Node, draw: random.Random) -> socket.socket:
    """Send an unauthorized request that announces a body."""
    connection = node.connect_tls()
    connection.sendall(b"POST /storage/v1/immutable/x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx")
    return connection


def never_read(node: Node, draw: random.Random) -> socket.socket:
    """Send many authorized reads of a share, and read no answers."""
    connection = node.connect_tls()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    kind = draw.choice(("immutable", "mutable"))
    request = (
        f"GET /storage/v1/{kind}/{node.a_share(draw)} HTTP/1.1\r\nHost: x\r\n".encode() + node.authorization + b"\r\n"
    )
    connection.settimeout(CONNECT_S)
    connection.sendall(request * 20)
    return connection


def stop_in_negotiation(node: Node, draw: random.Random) -> socket.socket:
    """Send the first lines of a Foolscap negotiation."""
    connection = node.connect()
    connection.sendall(f"GET /id/{node.tub_id} HTTP/1.1\r\nHost: x\r\nUpgrade: TLS/1.0\r\n".encode())
    return connection


def read_slowly(node: Node, draw: random.Random) -> socket.socket:
    """Send one authorized read of a share, and read the answer in sips."""
    connection = node.connect_tls()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    request = f"GET /storage/v1/immutable/{node.a_share(draw)} HTTP/1.1\r\nHost: x\r\n".encode()
    connection.sendall(request + node.authorization + b"\r\n")
    return connection


KINDS: Sequence[Callable[[Node, random.Random], socket.socket]] = (
    say_nothing,
    stop_after_tls,
    stop_in_tls,
    stop_in_head,
    stop_in_body,
    never_read,
    read_slowly,
    stop_in_negotiation,
)


class Gateway:
    """What is known of a gateway: its address, and one of its files."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.hostname not in ("127.0.0.1", "localhost"):
            raise ValueError(f"{url} is not on loopback")
        self.host, self._address = parts.netloc, (parts.hostname, parts.port or 80)
        request = urllib.request.Request(f"{url}uri?format=chk", random.randbytes(SLOW_FILE), method="PUT")
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.file = urllib.parse.quote(answer.read().decode().strip(), safe="")

    def connect(self) -> socket.socket:
        """Open a connection with a small receive buffer."""
        connection = socket.create_connection(self._address, CONNECT_S)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        return connection

    def say(self, text: str) -> socket.socket:
        """Open a connection and send this text."""
        connection = self.connect()
        connection.sendall(text.encode())
        return connection


def web_say_nothing(gateway: Gateway, draw: random.Random) -> socket.socket:
    """Connect and send nothing."""
    return gateway.connect()


def web_stop_in_head(gateway: Gateway, draw: random.Random) -> socket.socket:
    """Send half of a request's head."""
    return gateway.say(f"GET / HTTP/1.1\r\nHost: {gateway.host}\r\nX-Long: ")


def web_stop_in_body(gateway: Gateway, draw: random.Random) -> socket.socket:
    """Start an upload and send little of the announced body."""
    size = draw.choice((2000, 10**6, 10**9))
    return gateway.say(f"PUT /uri HTTP/1.1\r\nHost: {gateway.host}\r\nContent-Length: {size}\r\n\r\n" + 1000 * "x")


def web_never_read(gateway: Gateway, draw: random.Random) -> socket.socket:
    """Request a file many times, and read no answers."""
    return gateway.say(f"GET /uri/{gateway.file} HTTP/1.1\r\nHost: {gateway.host}\r\n\r\n" * draw.choice((1, 20)))


def web_read_slowly(gateway: Gateway, draw: random.Random) -> socket.socket:
    """Request a file once, and read it in sips."""
    return gateway.say(f"GET /uri/{gateway.file} HTTP/1.1\r\nHost: {gateway.host}\r\n\r\n")


WEB_KINDS: Sequence[Callable[[Gateway, random.Random], socket.socket]] = (
    web_say_nothing,
    web_stop_in_head,
    web_stop_in_body,
    web_never_read,
    web_read_slowly,
)

SLOW = {read_slowly.__name__, web_read_slowly.__name__}
"""The kinds of connection that are read slowly."""


@frozen(eq=False)
class Held:
    """An open connection. until: when to close it. kind: what was sent on it."""

    until: float
    kind: str
    connection: socket.socket

    def sip(self) -> None:
        """Read a little of the received data."""
        with contextlib.suppress(OSError):
            self.connection.setblocking(False)
            self.connection.recv(SIP)


def open_one(nodes: Sequence[Node], gateway: Gateway, draw: random.Random, now: float) -> Held:
    """Open a connection to a random node or the gateway; OSError."""
    kind: Callable[..., socket.socket]
    if draw.random() < len(WEB_KINDS) / (len(WEB_KINDS) + len(KINDS)):
        kind = draw.choice(WEB_KINDS)
        connection = kind(gateway, draw)
    else:
        kind = draw.choice(KINDS)
        connection = kind(draw.choice(nodes), draw)
    return Held(now + draw.uniform(*HELD_S), kind.__name__, connection)


def main() -> None:
    """Open, hold and close connections until the time is over; print how many there were of each kind."""
    seconds, most, url, directories = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    nodes = [Node(Path(directory)) for directory in directories]
    gateway = Gateway(url)
    draw = random.Random(most)
    held: list[Held] = []
    counts = {kind.__name__: 0 for kind in (*KINDS, *WEB_KINDS)}
    end = time.monotonic() + seconds
    while time.monotonic() < end and not select.select([sys.stdin], [], [], PACE_S)[0]:
        now = time.monotonic()
        for one in [one for one in held if one.until <= now]:
            one.connection.close()
            held.remove(one)
        for one in held:
            if one.kind in SLOW:
                one.sip()
        if len(held) < most:
            with contextlib.suppress(OSError):  # Refused, reset, frozen: all of these are expected.
                held.append(open_one(nodes, gateway, draw, now))
                counts[held[-1].kind] += 1
    print(counts, flush=True)


if __name__ == "__main__":
    main()
