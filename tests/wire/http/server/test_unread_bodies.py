"""Bodies that arrive faster than storage takes them: their memory is bounded over all connections."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.testing import StringTransport

from grid.wire.connections.connection_limit import ConnectionLimit, Permit
from grid.wire.connections.sockets import chunk_size
from grid.wire.http.server.channel import ServerChannel
from grid.wire.http.server.exchange import UNREAD_BYTES, UNREAD_LIMIT, Exchange
from tests.support.virtual_time import VirtualRuntime

HEAD = b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n"


class Transport(StringTransport):
    """A connection that records whether it is read."""

    def setTcpNoDelay(self, enabled: bool) -> None: ...


async def busy(_: Exchange) -> None:
    """A handler that waits for the disk."""
    await Deferred()


def taken_of(permit: Permit) -> int:
    """Bytes of a body that are taken from the socket of a connection whose handler is busy."""
    channel = ServerChannel(busy, VirtualRuntime().clock, permit, lambda _: None)
    transport: Any = Transport()  # type: ignore[no-untyped-call]
    channel.makeConnection(transport)  # type: ignore[no-untyped-call]
    channel.dataReceived(HEAD)
    size = 0
    while transport.producerState == "producing":
        piece = bytes(chunk_size(permit.crowd))
        channel.dataReceived(piece)
        size += len(piece)
    return size


@pytest.mark.parametrize("count", [1, 64, 512, 1024])
def test_bodies_whose_handlers_are_busy_wait_in_the_sockets_once_they_are_many(count: int) -> None:
    limit = ConnectionLimit(2 * count)
    entered = [limit.acquire(None) for _ in range(count)]
    permit = entered[-1]
    assert permit is not None
    taken = taken_of(permit)
    assert taken >= min(UNREAD_LIMIT, UNREAD_BYTES // count)
    assert count * taken <= max(2 * UNREAD_BYTES, UNREAD_LIMIT + chunk_size(1))
