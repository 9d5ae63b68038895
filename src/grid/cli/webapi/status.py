"""What a gateway says of itself: its introducers and its servers. [spec webapi 9.1]"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from grid.cli.webapi.connection import GatewayConnection
from grid.cli.webapi.refusals import GatewayError, readable_text
from grid.limits import MAX_STATUS_JSON

if TYPE_CHECKING:
    from grid.cli.connection import Connection

_CONNECTED = "connected"
_NAMED = re.compile(r" via \S+ \(([^()]+)\)$")


async def ask_gateway(connection: Connection) -> dict[str, object]:
    """The state in the shape of `grid status --json`, as far as a gateway tells it; GatewayError if it is none."""
    assert isinstance(connection, GatewayConnection)
    told = await connection.client.json("GET", [""], [("t", "json")], limit=MAX_STATUS_JSON)
    return parse_state(told)


def parse_state(told: object) -> dict[str, object]:
    """The same of an answer at hand."""
    match told:
        case {"introducers": {"statuses": list(statuses)}, "servers": list(servers)}:
            introducers = [_introducer(number, status) for number, status in enumerate(statuses)]
            found = [_server(server) for server in servers]
            return {
                "introducers": introducers,
                "servers": sorted(found, key=lambda server: (str(server["nickname"]), str(server["id"]))),
            }
    raise GatewayError("the answer is not the state of a gateway: is the URL right?")


def _introducer(number: int, status: object) -> dict[str, object]:
    text = _text(status)
    # 1.20: `Connected to HINT via tcp`; Grid: the same with ` (NAME)` behind it.
    is_connected = text.lower().startswith(_CONNECTED)
    named = _NAMED.search(text) if is_connected else None
    return {
        "name": named[1] if named else str(number + 1),
        "state": _CONNECTED if is_connected else "not connected",
        "detail": "" if is_connected else text,
    }


def _server(server: object) -> dict[str, object]:
    if not isinstance(server, dict):
        raise GatewayError("the answer is not the state of a gateway: is the URL right?")
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
    }


def _text(value: object) -> str:
    return readable_text(value.encode("utf-8", "replace")) if isinstance(value, str) else ""
