"""What the kernel says of a connection's socket, and what is asked of it: bytes acknowledged, and bytes to be woken for."""

from __future__ import annotations

import socket
import struct
from typing import Any

_BYTES_ACKED = struct.Struct("=Q")
_BYTES_ACKED_AT = 120
"""Where Linux's struct tcp_info has tcpi_bytes_acked."""


def acknowledged_size(transport: Any) -> int | None:
    """Bytes that the peer's kernel has acknowledged since the connection began; None where nobody knows."""
    handle = getattr(transport, "socket", None)
    if handle is None or not hasattr(socket, "TCP_INFO"):
        return None
    try:
        info = handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_ACKED_AT + _BYTES_ACKED.size)
    except OSError:
        return None
    if len(info) < _BYTES_ACKED_AT + _BYTES_ACKED.size:
        return None
    (size,) = _BYTES_ACKED.unpack_from(info, _BYTES_ACKED_AT)
    return int(size)


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
