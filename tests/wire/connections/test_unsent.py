"""What a lost connection has not sent, which Twisted keeps as long as anything refers to it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from grid.wire.connections.sockets import forget_unsent


@pytest.mark.parametrize("is_below_tls", [False, True])
def test_lost_connection_when_it_is_told_to_forget_holds_nothing_unsent(is_below_tls: bool) -> None:
    plain = SimpleNamespace(dataBuffer=b"sent in part", _tempDataBuffer=[b"not sent"])
    forget_unsent(SimpleNamespace(transport=plain) if is_below_tls else plain)
    assert (plain.dataBuffer, plain._tempDataBuffer) == (b"", [])


def test_transport_without_buffers_is_left_alone() -> None:
    bare = SimpleNamespace()
    forget_unsent(bare)
    assert vars(bare) == {}
