"""What a gateway shows of servers that answer, fall silent and come back."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import define, evolve, field
from twisted.internet.defer import Deferred

from grid.node.gateway import ANSWER_S, LOOK_S, RETRY_S, SILENT_S, LiveClient
from grid.ports import ServerIdentity, ServerVersion
from grid.runtime import Tasks
from grid.wire.status import ConnectionState, ConnectionStatus
from tests.support.virtual_time import VirtualRuntime
from tests.wire.http.rig import make_identity

VERSION = ServerVersion(
    application="grid/1", maximum_immutable_share_size=1, maximum_mutable_share_size=1, available_space=1
)


@define(eq=False)
class Server:
    """A server whose connection stays open, whether it answers or not. It is its own entry in the list of servers."""

    identity: ServerIdentity = field(factory=make_identity)
    status: ConnectionStatus = field(factory=lambda: ConnectionStatus(state=ConnectionState.IDLE, since=0.0))
    is_silent: bool = False
    asked: int = 0
    is_counted: bool = True
    is_recalled: bool = False
    addresses: Sequence[str] = ("tcp:192.0.2.1:1",)

    @property
    def counts_as(self) -> str:
        return self.identity.server_id

    async def get_version(self) -> ServerVersion:
        self.asked += 1
        if self.is_silent:
            await Deferred()
        self.status = evolve(self.status, state=ConnectionState.CONNECTED)
        return VERSION


def test_server_that_was_just_announced_is_connecting_until_something_is_known_to_be_wrong() -> None:
    server = Server()
    client: Any = SimpleNamespace(server_set=SimpleNamespace(entries=[server], servers=[server]))
    view = LiveClient(client, {}, {}, Tasks())
    [shown] = view.servers()
    assert shown.is_connecting and not shown.is_connected and shown.status == "connecting (tcp:192.0.2.1:1)"
    server.status = evolve(server.status, state=ConnectionState.CONNECTING, detail="connection refused")
    [shown] = view.servers()
    assert not shown.is_connecting and shown.status == "connection refused (tcp:192.0.2.1:1)"


def test_server_that_no_introducer_lists_now_is_not_shown() -> None:
    servers = [Server(), Server(is_recalled=True)]
    client: Any = SimpleNamespace(server_set=SimpleNamespace(entries=servers, servers=servers))
    assert len(LiveClient(client, {}, {}, Tasks()).servers()) == 1


@pytest.mark.parametrize(
    ("is_read_only", "word"), [(None, "no space or read-only"), (False, "full"), (True, "read-only")]
)
def test_connected_server_without_space_is_shown_with_the_reason(is_read_only: bool | None, word: str) -> None:
    version = evolve(VERSION, available_space=0, is_read_only=is_read_only)
    server = Server(status=ConnectionStatus(state=ConnectionState.CONNECTED, since=0.0, version=version))
    client: Any = SimpleNamespace(server_set=SimpleNamespace(entries=[server], servers=[server]))
    [shown] = LiveClient(client, {}, {}, Tasks()).servers()
    assert shown.status.endswith(f"; {word}: it takes no new files") and shown.no_room == word


def test_connected_server_that_does_not_answer_is_shown_as_not_connected_until_it_does() -> None:
    runtime, server = VirtualRuntime(), Server()
    known = SimpleNamespace(entries=[server], servers=[server])
    client: Any = SimpleNamespace(
        server_set=known, runtime=runtime, memory=SimpleNamespace(heard=lambda *_: None),
        start=lambda: None, start_probing=lambda: None,
    )  # fmt: skip
    view = LiveClient(cast("Any", client), {}, {}, Tasks())

    def passes(seconds: float) -> None:
        for _ in range(round(seconds)):
            runtime.clock.task_clock.advance(1.0)

    view.start()
    passes(LOOK_S - 1)
    assert view.servers()[0].is_connected and server.asked == 1
    server.is_silent = True
    passes(SILENT_S + 2)
    [shown] = view.servers()
    assert not shown.is_connected and shown.status == "no answer (tcp:192.0.2.1:1)" and server.asked == 2
    passes(ANSWER_S - SILENT_S)
    assert not view.servers()[0].is_connected and server.asked == 2, (
        "it is not asked again before it could have answered"
    )
    server.is_silent = False
    passes(RETRY_S + RETRY_S)
    assert view.servers()[0].is_connected and server.asked == 3
    view.close()
