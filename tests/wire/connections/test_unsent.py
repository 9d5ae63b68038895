"""Unsent data of a lost connection, which Twisted keeps as long as anything refers to it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from twisted.internet.abstract import FileDescriptor

from grid.wire.connections.sockets import forget_unsent


@pytest.mark.parametrize("is_below_tls", [False, True])
def test_lost_connection_when_cleared_holds_nothing_unsent(is_below_tls: bool) -> None:
    plain: Any = FileDescriptor(cast(Any, SimpleNamespace(addWriter=lambda _: None)))
    plain.connected = True
    plain.writeSomeData = lambda data: len(data) // 2
    plain.write(b"sent in part")
    plain.doWrite()
    plain.write(b"not sent")
    assert plain.dataBuffer[plain.offset :] == b"n part"
    assert (plain._tempDataBuffer, plain._tempDataLen) == ([b"not sent"], 8)
    forget_unsent(SimpleNamespace(transport=plain) if is_below_tls else plain)
    assert (plain.dataBuffer, plain.offset, plain._tempDataBuffer, plain._tempDataLen) == (b"", 0, [], 0)


def test_transport_that_is_not_a_socket_is_left_alone() -> None:
    bare = SimpleNamespace(dataBuffer=b"its own")
    forget_unsent(bare)
    assert vars(bare) == {"dataBuffer": b"its own"}
