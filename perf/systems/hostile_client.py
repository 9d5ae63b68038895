"""Hostile connections to the storage nodes and the gateway of a soak's own grid: silent, half said, never read, read slowly.

    python -m perf.systems.hostile_client SECONDS MOST GATEWAY_URL NODE_DIRECTORY...

It keeps at most MOST connections open, each for some seconds, and ends by itself after SECONDS or when its input ends. It
reads the nodes' own directories for what an authorized client knows. Only nodes that listen on loopback are addressed.
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
"""How long a connection is held."""

PACE_S = 0.1
CONNECT_S = 2.0

SIP = 2000
"""Bytes that a slow reader takes at a time: 20 kB a second."""

SLOW_FILE = 8 << 20
"""Bytes of the file that slow readers of the gateway ask for."""


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
        """A plain connection."""
        return socket.create_connection(("127.0.0.1", self.port), CONNECT_S)

    def connect_tls(self) -> ssl.SSLSocket:
        """One with TLS; who the node is does not matter here."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(self.connect())

    @property
    def authorization(self) -> bytes:
        """The header of who may use the node."""
        return b"Authorization: Tahoe-LAFS " + base64.b64encode(self._swissnum.encode()) + b"\r\n"

    def a_share(self, draw: random.Random) -> str:
        """Index and number of an immutable or mutable share that the node has, as an address ends; empty without one."""
        shares = self._directory / "storage" / "shares"
        found = [path for path in shares.glob("??/*/*") if path.parent.parent.name != "incoming"]
        if not found:
            return ""
        path = draw.choice(found)
        return f"{path.parent.name}/{path.name}"


def say_nothing(node: Node, draw: random.Random) -> socket.socket:
    """A connection, and no word."""
    return node.connect()


def stop_after_tls(node: Node, draw: random.Random) -> socket.socket:
    """A TLS handshake, and no word."""
    return node.connect_tls()


def stop_in_tls(node: Node, draw: random.Random) -> socket.socket:
    """The beginning of a TLS handshake."""
    connection = node.connect()
    connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + draw.randbytes(8))
    return connection


def stop_in_head(node: Node, draw: random.Random) -> socket.socket:
    """Half of a request's head."""
    connection = node.connect_tls()
    connection.sendall(b"GET /storage/v1/version HTTP/1.1\r\nHost: x\r\nX-Long: ")
    return connection


def stop_in_body(node: Node, draw: random.Random) -> socket.socket:
    """A request without authorization that promises a body."""
    connection = node.connect_tls()
    connection.sendall(b"POST /storage/v1/immutable/x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx")
    return connection


def never_read(node: Node, draw: random.Random) -> socket.socket:
    """Many authorized reads of a share whose answers nobody takes."""
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
    """The first lines of Foolscap."""
    connection = node.connect()
    connection.sendall(f"GET /id/{node.tub_id} HTTP/1.1\r\nHost: x\r\nUpgrade: TLS/1.0\r\n".encode())
    return connection


def read_slowly(node: Node, draw: random.Random) -> socket.socket:
    """One authorized read of a share, taken in sips."""
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
    """What is known of a gateway: where it is, and one file of it."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.hostname not in ("127.0.0.1", "localhost"):
            raise ValueError(f"{url} is not on loopback")
        self.host, self._address = parts.netloc, (parts.hostname, parts.port or 80)
        request = urllib.request.Request(f"{url}uri?format=chk", random.randbytes(SLOW_FILE), method="PUT")
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.file = urllib.parse.quote(answer.read().decode().strip(), safe="")

    def connect(self) -> socket.socket:
        """A connection that takes little at a time."""
        connection = socket.create_connection(self._address, CONNECT_S)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        return connection

    def say(self, text: str) -> socket.socket:
        """A connection on which this was said."""
        connection = self.connect()
        connection.sendall(text.encode())
        return connection


def web_say_nothing(gateway: Gateway, draw: random.Random) -> socket.socket:
    """A connection, and no word."""
    return gateway.connect()


def web_stop_in_head(gateway: Gateway, draw: random.Random) -> socket.socket:
    """Half of a request's head."""
    return gateway.say(f"GET / HTTP/1.1\r\nHost: {gateway.host}\r\nX-Long: ")


def web_stop_in_body(gateway: Gateway, draw: random.Random) -> socket.socket:
    """An upload that sends a little of what it promises."""
    size = draw.choice((2000, 10**6, 10**9))
    return gateway.say(f"PUT /uri HTTP/1.1\r\nHost: {gateway.host}\r\nContent-Length: {size}\r\n\r\n" + 1000 * "x")


def web_never_read(gateway: Gateway, draw: random.Random) -> socket.socket:
    """Many reads of a file that nobody takes."""
    return gateway.say(f"GET /uri/{gateway.file} HTTP/1.1\r\nHost: {gateway.host}\r\n\r\n" * draw.choice((1, 20)))


def web_read_slowly(gateway: Gateway, draw: random.Random) -> socket.socket:
    """One read of a file, taken in sips."""
    return gateway.say(f"GET /uri/{gateway.file} HTTP/1.1\r\nHost: {gateway.host}\r\n\r\n")


WEB_KINDS: Sequence[Callable[[Gateway, random.Random], socket.socket]] = (
    web_say_nothing,
    web_stop_in_head,
    web_stop_in_body,
    web_never_read,
    web_read_slowly,
)

SLOW = {read_slowly.__name__, web_read_slowly.__name__}
"""The kinds of which something is read all the time."""


@frozen(eq=False)
class Held:
    """A connection that is open. until: when it is to be closed; kind: what was said on it."""

    until: float
    kind: str
    connection: socket.socket

    def sip(self) -> None:
        """Read a little of what has come."""
        with contextlib.suppress(OSError):
            self.connection.setblocking(False)
            self.connection.recv(SIP)


def open_one(nodes: Sequence[Node], gateway: Gateway, draw: random.Random, now: float) -> Held:
    """One more connection, to any node or to the gateway; OSError."""
    kind: Callable[..., socket.socket]
    if draw.random() < len(WEB_KINDS) / (len(WEB_KINDS) + len(KINDS)):
        kind = draw.choice(WEB_KINDS)
        connection = kind(gateway, draw)
    else:
        kind = draw.choice(KINDS)
        connection = kind(draw.choice(nodes), draw)
    return Held(now + draw.uniform(*HELD_S), kind.__name__, connection)


def main() -> None:
    """Open, hold and close connections until the time is over; print how many of each kind there were."""
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
            with contextlib.suppress(OSError):  # Refused, reset, frozen: all of that is as it should be.
                held.append(open_one(nodes, gateway, draw, now))
                counts[held[-1].kind] += 1
    print(counts, flush=True)


if __name__ == "__main__":
    main()
