"""From how many bytes on a socket wakes its reader: a turn of the event loop costs the same for one byte as for many."""

from __future__ import annotations

import socket
from typing import Any


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
