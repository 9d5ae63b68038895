"""Many clients at once, most of them slow: all are served, in bounded memory."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.gateway.running import RunningGateway, running_process, uri

MIB = 2**20
FILE = random.Random(3).randbytes(8 * MIB)
SLOW = 200
SEEKING = 50
SEEKS = 6
PIECE = 65536

READERS_BOUND = (SLOW + SEEKING) * 2 * MIB
"""Bytes above what it held before, while all slow readers have stopped in the middle of their 8 MiB: of each what the servers
of this process gave when they were asked first, a segment or a little more as blocks and as text, and 256 KiB for the socket."""

WRITERS_BOUND = 200 * MIB
"""The same for 200 writers who have sent 3.5 MiB of 4 each: a spool holds 1 MiB before it writes, not 3.5."""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[RunningGateway]:
    """One of its own, so that its peak is of this test."""
    with running_process(tmp_path / "gateway") as gateway:
        yield gateway


def test_slow_readers_and_seeking_ones_are_all_served_within_bounded_memory(gateway: RunningGateway) -> None:
    cap = gateway.put(FILE)
    gateway.ask("GET", uri(cap))
    held = gateway.resident()
    gateway.forget_peak()
    slow = [start(gateway, f"GET {uri(cap)}") for _ in range(SLOW)]
    try:
        for connection in slow:
            connection.recv(1, socket.MSG_PEEK)
        seeds = range(SEEKING)
        with ThreadPoolExecutor(SEEKING) as pool:
            assert all(pool.map(lambda seed: seeks_right(gateway, cap, seed), seeds))
        assert gateway.peak() - held < READERS_BOUND
        for connection in slow[::20]:
            assert rest_of(connection).endswith(FILE)
    finally:
        for connection in slow:
            connection.close()
    assert gateway.ask("GET", uri(cap)).body == FILE


def test_slow_writers_hold_nobody_up_and_little_memory(gateway: RunningGateway) -> None:
    gateway.put(FILE)
    held = gateway.resident()
    gateway.forget_peak()
    slow = [start(gateway, "PUT /uri", 4 * MIB) for _ in range(SLOW)]
    try:
        for connection in slow:
            connection.sendall(FILE[: 7 * MIB // 2])
        cap = gateway.put(FILE[:MIB])
        assert gateway.ask("GET", uri(cap)).body == FILE[:MIB]
        assert gateway.peak() - held < WRITERS_BOUND
        slow[0].sendall(FILE[7 * MIB // 2 : 4 * MIB])
        head, _, body = rest_of(slow[0]).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert re.search(rb"URI:CHK:[a-z2-7:0-9]+", body)
    finally:
        for connection in slow:
            connection.close()
    assert gateway.ask("GET", "/healthz").status == 200


def start(gateway: RunningGateway, what: str, size: int | None = None) -> socket.socket:
    """A request whose head was sent, by a client that reads slowly."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)
    connection.settimeout(60)
    connection.connect(("127.0.0.1", gateway.port))
    length = "" if size is None else f"Content-Length: {size}\r\n"
    connection.sendall(f"{what} HTTP/1.1\r\nHost: {gateway.host}\r\nConnection: close\r\n{length}\r\n".encode())
    return connection


def rest_of(connection: socket.socket) -> bytes:
    """Everything received until the end."""
    received = bytearray()
    while piece := connection.recv(MIB):
        received += piece
    return bytes(received)


def seeks_right(gateway: RunningGateway, cap: str, seed: int) -> bool:
    """Whether ranges at random offsets match the file."""
    draw = random.Random(seed)
    for _ in range(SEEKS):
        first = draw.randrange(len(FILE))
        last = min(len(FILE) - 1, first + draw.randrange(PIECE))
        reply = gateway.ask("GET", uri(cap), headers={"Range": f"bytes={first}-{last}"})
        if reply.status != 206 or reply.body != FILE[first : last + 1]:
            return False
    return True
