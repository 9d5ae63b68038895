"""How much of what was sent over a connection its other end has received, as far as the kernel says."""

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
