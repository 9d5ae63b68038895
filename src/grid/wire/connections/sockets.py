"""Sockets: what the peer has acknowledged and how soon, when arrivals wake us (SO_RCVLOWAT), and how much TLS handles at once."""

from __future__ import annotations

import socket
import struct
from typing import Any

_BYTES_ACKED = struct.Struct("=Q")
_BYTES_ACKED_AT = 120
"""Where Linux's struct tcp_info has tcpi_bytes_acked."""

_SHORTEST_US = struct.Struct("=I")
_SHORTEST_US_AT = 148
"""Where it has tcpi_min_rtt, in microseconds."""

_NO_SAMPLE = 2**32 - 1


def acknowledged_size(transport: Any) -> int | None:
    """Bytes that the peer's kernel has acknowledged since the connection began; None where nobody knows."""
    return _read_info(transport, _BYTES_ACKED, _BYTES_ACKED_AT)


def shortest_round_trip_s(transport: Any) -> float | None:
    """The shortest round trip on the connection so far; None where nobody knows, or none has ended yet."""
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
    """Have the transport's socket count as readable from that many bytes on, where it is one and the system can.

    Only what is sure to come may be waited for; the end of a connection is noticed all the same.
    """
    handle = getattr(transport, "socket", None)
    if handle is not None:
        try:
            handle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, mark)
        except OSError:
            pass  # Then it is woken more often.


LARGEST_CHUNK = 2**18
"""One call into OpenSSL for a quarter megabyte costs little beside the cipher."""

_BY_CROWD = ((16, LARGEST_CHUNK), (64, 2**16))
_SMALLEST_CHUNK = 2**14


def chunk_size(crowd: int) -> int:
    """How many bytes each of that many connections encrypts, or takes from its socket, at once.

    OpenSSL keeps for each connection the largest buffer that it ever needed, in each direction, until the connection
    ends. With large chunks on all of them, clients that never read would make a server hold half a megabyte each,
    outside of every budget.
    """
    return next((size for most, size in _BY_CROWD if crowd <= most), _SMALLEST_CHUNK)


def largest_chunk() -> int:
    """Bytes at once where connections are few: a client's."""
    return LARGEST_CHUNK
