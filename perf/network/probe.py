"""Measures a network: round trips, rates and congestion control of a TCP connection between two hosts.

A socket belongs to the namespace in which it was created, so both ends of a probe can be threads of one process.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from attrs import asdict, frozen

ROUND_TRIPS = 21
RATE_S = 2.0
"""Seconds of sending; the first half, in which TCP adapts to the link, does not count."""

PIECE = 1 << 18
TIMEOUT_S = 30.0

Inside = Callable[[], AbstractContextManager[None]]
"""Enters a host."""


@frozen(kw_only=True)
class Found:
    """round_trips_s: of a one-byte message and its answer, sorted. up, down: bits per second from and to the client."""

    round_trips_s: list[float]
    up: float
    down: float
    congestion_control: str

    @property
    def round_trip_s(self) -> float:
        """The median."""
        return self.round_trips_s[len(self.round_trips_s) // 2]

    def described(self) -> dict[str, Any]:
        """The findings as a record stores them."""
        return {**asdict(self), "round_trip_s": self.round_trip_s}


def probe(client: Inside, server: Inside, address: str, rate_s: float = RATE_S) -> Found:
    """Measure a connection from the client to this address of the server. rate_s: 0 to skip the rates."""
    with _connected(client, server, address) as (near, far):
        trips = sorted(_ping_pong(near, far, ROUND_TRIPS))
        name = near.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
    rates = []
    for up in (True, False):
        with _connected(client, server, address) as (near, far):
            rates.append((_rate(near, far, rate_s) if up else _rate(far, near, rate_s)) if rate_s else 0.0)
    return Found(round_trips_s=trips, up=rates[0], down=rates[1], congestion_control=name)


@contextmanager
def _connected(client: Inside, server: Inside, address: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    with server(), socket.create_server((address, 0)) as listener:
        listener.settimeout(TIMEOUT_S)
        port = listener.getsockname()[1]
        with client():
            near = socket.create_connection((address, port), TIMEOUT_S)
        with near, listener.accept()[0] as far:
            for end in (near, far):
                end.settimeout(TIMEOUT_S)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield near, far


def _ping_pong(near: socket.socket, far: socket.socket, count: int) -> list[float]:
    def answer() -> None:
        for _ in range(count):
            far.sendall(far.recv(1))

    with _beside(answer):
        trips = []
        for _ in range(count):
            began = time.perf_counter()
            near.sendall(b"?")
            near.recv(1)
            trips.append(time.perf_counter() - began)
    return trips


def _rate(sender: socket.socket, receiver: socket.socket, seconds: float) -> float:
    """Bits per second that arrive in the second half of the time."""

    def send() -> None:
        piece = bytes(PIECE)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            sender.sendall(piece)
        sender.shutdown(socket.SHUT_WR)

    arrivals = []
    with _beside(send):
        buffer = bytearray(PIECE)
        received = 0
        while size := receiver.recv_into(buffer):
            received += size
            arrivals.append((time.perf_counter(), received))
    return rate_of(arrivals)


def rate_of(arrivals: list[tuple[float, int]]) -> float:
    """Bits per second between the middle and the end of the arrivals: (time, total bytes)."""
    middle = (arrivals[0][0] + arrivals[-1][0]) / 2
    first, before = next(arrival for arrival in arrivals if arrival[0] >= middle)
    last, after = arrivals[-1]
    return (after - before) * 8 / (last - first) if last > first else 0.0


@contextmanager
def _beside(work: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield
    thread.join(TIMEOUT_S)
