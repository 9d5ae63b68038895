"""Sockets: what the peer has acknowledged, the shortest round trip, wake-up thresholds (SO_RCVLOWAT), probes of idle
connections, sizes of TLS chunks, unsent data.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import Any

from twisted.internet.abstract import FileDescriptor
from twisted.internet.tcp import Connection

from grid.ports import Buffer

_BYTES_ACKED = struct.Struct("=Q")
_BYTES_ACKED_AT = 120
"""Offset of tcpi_bytes_acked in Linux's struct tcp_info."""

_SHORTEST_US = struct.Struct("=I")
_SHORTEST_US_AT = 148
"""Offset of tcpi_min_rtt, in microseconds."""

_NO_SAMPLE = 2**32 - 1


def acknowledged_size(transport: Any) -> int | None:
    """Bytes that the peer's kernel has acknowledged on this connection; None if unknown."""
    return _read_info(transport, _BYTES_ACKED, _BYTES_ACKED_AT)


def shortest_round_trip_s(transport: Any) -> float | None:
    """The shortest round trip on the connection so far; None if unknown or if none has ended yet."""
    shortest_us = _read_info(transport, _SHORTEST_US, _SHORTEST_US_AT)
    return None if shortest_us in (None, _NO_SAMPLE) else shortest_us / 1e6


def _read_info(transport: Any, field: struct.Struct, offset: int) -> int | None:
    """One field of Linux's struct tcp_info."""
    handle = getattr(transport, "socket", None)
    if handle is None or not hasattr(socket, "TCP_INFO"):
        return None
    try:
        info = handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, offset + field.size)
    except OSError:
        return None
    return int(field.unpack_from(info, offset)[0]) if len(info) >= offset + field.size else None


def set_wake_mark(transport: Any, mark: int) -> None:
    """Make the transport's socket readable only from that many bytes on, if the system can.

    Wait only for bytes that are sure to come. The end of a connection is noticed in any case.
    """
    handle = getattr(transport, "socket", None)
    if handle is not None:
        try:
            handle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, mark)
        except OSError:
            pass  # Then it wakes more often.


_PROBE_EVERY_S = 15
_PROBES = 3


def probe_when_idle(transport: Any, after_s: float) -> None:
    """Let the system probe the peer when the connection has been idle for that long, and close it if no probe is answered.

    Routers on the way also remember a connection that is probed.
    """
    handle = getattr(transport, "socket", None)
    if handle is None or not all(hasattr(socket, name) for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")):
        return
    try:
        handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, round(after_s))
        handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_EVERY_S)
        handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    except OSError:
        pass  # Then a request finds out.


LARGEST_CHUNK = 2**18
"""Beside the cipher, one OpenSSL call per quarter megabyte costs little."""

CLIENTS_CHUNK = 2**19
"""A client has few connections, and sends the most when it stores a file. With twice as much at once, sockets are called
and count as full less often. [docs/decisions/0516-records-without-copies.md]
"""

_BY_CROWD = ((16, LARGEST_CHUNK), (64, 2**16))
_SMALLEST_CHUNK = 2**14


def chunk_size(crowd: int) -> int:
    """How many bytes each of that many connections encrypts or reads from its socket at once.

    For each connection and direction, OpenSSL keeps the largest buffer that it ever needed until the connection
    ends. With large chunks everywhere, each client that never reads would make a server hold half a megabyte,
    outside of every budget.
    """
    for most, size in _BY_CROWD:
        if crowd <= most:
            return size
    return _SMALLEST_CHUNK


def largest_chunk() -> int:
    """Bytes at once when there are few connections."""
    return LARGEST_CHUNK


def clients_chunk() -> int:
    """Bytes at once in a client."""
    return CLIENTS_CHUNK


MOST_PIECES = 512
"""Pieces passed to a socket in one call: systems accept at least 1,024."""


def send_now(transport: Any, pieces: Sequence[Buffer]) -> list[Buffer]:
    """Pass bytes to the transport's socket without a copy, unless earlier ones wait. Returns those that it did not take.

    Write these to the transport, which also notices a lost connection.
    """
    plain = isinstance(transport, Connection) and transport.connected and not transport.disconnecting
    if not plain or transport.dataBuffer or transport._tempDataBuffer:
        return list(pieces)
    try:
        taken = transport.socket.sendmsg(pieces[:MOST_PIECES])
    except OSError:
        taken = 0
    left = list(pieces)
    first = 0
    while first < len(left) and taken >= len(left[first]):
        taken -= len(left[first])
        first += 1
    del left[:first]
    if taken:
        left[0] = left[0][taken:]
    return left


def forget_unsent(transport: Any) -> None:
    """Drop what a lost connection has not sent. Twisted keeps it as long as anything refers to the connection."""
    plain = getattr(transport, "transport", None) or transport  # Below TLS.
    if isinstance(plain, FileDescriptor):
        plain.dataBuffer, plain.offset = b"", 0
        plain._tempDataBuffer, plain._tempDataLen = [], 0
