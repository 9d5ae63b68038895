"""When a grid counts as ready."""

from __future__ import annotations

from typing import Any, cast

import pytest
from attrs import define, field

from grid.discovery.announcement import Announcement, parse_fields
from grid.discovery.server_set import ServerSet
from grid.errors import GridError
from grid.node.client import Client
from grid.node.readiness import wait_for_servers
from grid.ports import ServerId, ServerIdentity
from grid.wire.status import ConnectionState, ConnectionStatus, RemoteServer
from tests.discovery.samples import IDS, announcement, fields
from tests.support.scripted_server import ScriptedServer
from tests.support.virtual_time import VirtualRuntime


class NearServer(ScriptedServer):
    """A server that answers, unless it is scripted to be dead."""

    @property
    def status(self) -> ConnectionStatus:
        return ConnectionStatus(state=ConnectionState.IDLE, since=0.0)

    async def connect(self) -> None:
        return

    def forget_failures(self) -> None:
        return

    def close(self) -> None:
        return


@define
class Stage:
    """What wait_for_servers sees of a client."""

    runtime: VirtualRuntime = field(factory=VirtualRuntime)
    made: dict[str, NearServer] = field(factory=dict)
    server_set: ServerSet = field(init=False)
    complaints: int = 0

    def __attrs_post_init__(self) -> None:
        self.server_set = ServerSet(self._make, self.runtime.clock)

    def _make(self, identity: ServerIdentity, made: Announcement) -> RemoteServer:
        self.made[identity.server_id] = NearServer(identity.server_id, self.runtime.clock)
        self.made[identity.server_id].identity = identity
        return self.made[identity.server_id]

    def start(self) -> None:
        return

    def complain(self) -> None:
        self.complaints += 1

    def wait(self, count: int, deadline_s: float = 30.0) -> float:
        """The time it takes."""
        self.runtime.run(wait_for_servers(cast(Client, cast(Any, self)), count, deadline_s, self.complain))
        return self.runtime.clock.now()


def remembered(index: int) -> Announcement:
    """As the cache file has it."""
    return parse_fields(ServerId(IDS[index]), fields())


def test_servers_when_all_are_announced_and_answer_are_ready() -> None:
    stage = Stage()
    stage.server_set.announced(announcement(0))
    stage.server_set.announced(announcement(1))
    assert stage.wait(2) < 1
    assert stage.complaints == 1


def test_servers_when_they_are_only_remembered_are_not_ready_though_they_answer() -> None:
    stage = Stage()
    stage.server_set.announced(remembered(0))
    stage.runtime.clock.call_later(7.0, lambda: stage.server_set.announced(announcement(0)))
    assert stage.wait(1) > 7
    assert stage.complaints > 10


def test_servers_when_a_file_names_them_need_no_announcement() -> None:
    stage = Stage()
    stage.server_set.add_static(remembered(0))
    assert stage.wait(1) < 1


def test_servers_when_one_does_not_answer_are_not_ready() -> None:
    stage = Stage()
    stage.server_set.announced(announcement(0))
    stage.server_set.announced(announcement(1))
    stage.made[IDS[1]].script.dead_from = 0
    with pytest.raises(GridError, match="only 1 of 2 servers answered within 30 s"):
        stage.wait(2)
