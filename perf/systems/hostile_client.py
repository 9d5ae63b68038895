"""Hostile connections to the storage nodes of a soak's own grid: silent, half said, never read.

    python -m perf.systems.hostile_client SECONDS MOST NODE_DIRECTORY...

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
from collections.abc import Callable, Sequence
from pathlib import Path

HELD_S = (1.0, 8.0)
"""How long a connection is held."""

PACE_S = 0.1
CONNECT_S = 2.0


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


KINDS: Sequence[Callable[[Node, random.Random], socket.socket]] = (
    say_nothing,
    stop_after_tls,
    stop_in_tls,
    stop_in_head,
    stop_in_body,
    never_read,
    stop_in_negotiation,
)


def main() -> None:
    """Open, hold and close connections until the time is over; print how many of each kind there were."""
    seconds, most, directories = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    nodes = [Node(Path(directory)) for directory in directories]
    draw = random.Random(most)
    held: list[tuple[float, socket.socket]] = []
    counts = {kind.__name__: 0 for kind in KINDS}
    end = time.monotonic() + seconds
    while time.monotonic() < end and not select.select([sys.stdin], [], [], PACE_S)[0]:
        now = time.monotonic()
        for due, connection in [item for item in held if item[0] <= now]:
            connection.close()
            held.remove((due, connection))
        if len(held) < most:
            kind, node = draw.choice(KINDS), draw.choice(nodes)
            with contextlib.suppress(OSError):  # Refused, reset, frozen: all of that is as it should be.
                held.append((now + draw.uniform(*HELD_S), kind(node, draw)))
                counts[kind.__name__] += 1
    print(counts, flush=True)


if __name__ == "__main__":
    main()
