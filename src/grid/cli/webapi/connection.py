"""A command's connection to the grid through a gateway, and the gateway's own state. [spec webapi 9.1]"""

from __future__ import annotations

import re
from typing import get_args

from grid.caps import ImmutableFileCap
from grid.cli.webapi.http import GatewayClient
from grid.cli.webapi.refusals import GatewayError, readable_text
from grid.cli.webapi.store import GatewayStore
from grid.cli.webapi.surveys import GatewaySurvey
from grid.directory.store import Store
from grid.limits import MAX_STATUS_JSON
from grid.placement.space import LackOfRoom
from grid.ports import Observer, Runtime, Sink, ignore_events
from grid.values import frozen

_CONNECTED = "connected"

_MOST_S = 2**40
"""No round trip and no clock is off by more seconds."""

_NAMED = re.compile(r" via \S+ \(([^()]+)\)$")


@frozen
class GatewayConnection:
    """Sends everything to the gateway, which knows the servers."""

    client: GatewayClient

    @property
    def runtime(self) -> Runtime:
        """The process's clock, CPU pool and entropy."""
        return self.client.runtime

    async def open_store(self, observer: Observer = ignore_events) -> GatewayStore:
        """The gateway's store; sends no request yet."""
        return GatewayStore(client=self.client, observer=observer)

    def store_without_servers(self) -> GatewayStore:
        """A store for literal (LIT) files, which need no servers."""
        return GatewayStore(client=self.client)

    async def read_immutable(
        self, cap: ImmutableFileCap, sink: Sink, offset: int, length: int | None, observer: Observer
    ) -> int:
        """Read an immutable file and return the number of bytes."""
        return await GatewayStore(client=self.client, observer=observer).read(cap, sink, offset, length)

    def survey(self, store: Store) -> GatewaySurvey:
        """A survey that reads the gateway's streams."""
        assert isinstance(store, GatewayStore)
        return GatewaySurvey(store)


async def ask_gateway(connection: object) -> dict[str, object]:
    """The state in the form of `grid status --json`, as far as a gateway reports it; GatewayError if it is not a
    gateway.

    connection: a GatewayConnection, as commands' operations receive it.
    """
    assert isinstance(connection, GatewayConnection)
    answer = await connection.client.json("GET", [""], [("t", "json")], limit=MAX_STATUS_JSON)
    return parse_state(answer)


def parse_state(answer: object) -> dict[str, object]:
    """Parse an answer into the same form."""
    match answer:
        case {"introducers": {"statuses": list(statuses)}, "servers": list(servers)}:
            introducers = [_introducer(number, status) for number, status in enumerate(statuses)]
            found = [_server(server) for server in servers]
            return {
                "introducers": introducers,
                "servers": sorted(found, key=lambda server: (str(server["nickname"]), str(server["id"]))),
            }
    raise GatewayError("the answer is not a gateway's status: is the URL right?")


def _introducer(number: int, status: object) -> dict[str, object]:
    text = _text(status)
    # 1.20: `Connected to HINT via tcp`; Grid: the same with ` (NAME)` appended.
    is_connected = text.lower().startswith(_CONNECTED)
    named = _NAMED.search(text) if is_connected else None
    return {
        "name": named[1] if named else str(number + 1),
        "state": _CONNECTED if is_connected else "not connected",
        "detail": "" if is_connected else text,
    }


def _server(server: object) -> dict[str, object]:
    if not isinstance(server, dict):
        raise GatewayError("the answer is not a gateway's status: is the URL right?")
    status = _text(server.get("connection_status"))
    about: dict[str, object] = {"id": _text(server.get("nodeid")), "nickname": _text(server.get("nickname"))}
    if not status.lower().startswith(_CONNECTED):
        return {**about, "reachable": False, "detail": status}
    space = server.get("available_space")
    return {
        **about,
        "reachable": True,
        "version": _text(server.get("version")),
        "available_space": space if isinstance(space, int) and not isinstance(space, bool) else None,
        **_known(server),
    }


def _known(server: dict[str, object]) -> dict[str, object]:
    """What Grid's gateway adds if it knows it, and 1.20's never: round trip, transport, clock, and why there is no room."""
    found: dict[str, object] = {}
    round_trip, ahead_s = server.get("round_trip"), server.get("clock_ahead")
    if isinstance(round_trip, float) and 0 <= round_trip < _MOST_S:
        found["seconds"] = round(round_trip, 4)
    if transport := _text(server.get("transport")):
        found["transport"] = transport
    if server.get("no_room") in get_args(LackOfRoom):
        found["no_room"] = server["no_room"]
    if isinstance(ahead_s, int) and not isinstance(ahead_s, bool) and abs(ahead_s) < _MOST_S:
        found["clock_ahead"] = ahead_s
    return found


def _text(value: object) -> str:
    return readable_text(value.encode("utf-8", "replace")) if isinstance(value, str) else ""
