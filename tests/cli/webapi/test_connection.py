"""None"""

from __future__ import annotations

import pytest

from grid.cli.webapi.connection import parse_state
from grid.cli.webapi.refusals import GatewayError


def test_state_of_either_gateway_says_who_is_connected() -> None:
    servers = [
        {"nodeid": "v0-b", "nickname": "b", "connection_status": "Connected to tcp:h:1 via tcp", "version": "x/1",
         "available_space": 7},
        {"nodeid": "v0-a", "nickname": "a", "connection_status": "Trying to connect", "version": None},
        {"nodeid": "v0-c", "nickname": "c", "connection_status": "connected", "version": "y", "available_space": None},
    ]  # fmt: skip
    statuses = ["Connected to tcp:h:2 via tcp", "Connected to tcp:h:3 via tcp (home)", "Reconnecting in 3 s"]
    found = parse_state({"introducers": {"statuses": statuses}, "servers": servers})
    assert found["introducers"] == [
        {"name": "1", "state": "connected", "detail": ""},
        {"name": "home", "state": "connected", "detail": ""},
        {"name": "3", "state": "not connected", "detail": "Reconnecting in 3 s"},
    ]
    assert found["servers"] == [
        {"id": "v0-a", "nickname": "a", "reachable": False, "detail": "Trying to connect"},
        {"id": "v0-b", "nickname": "b", "reachable": True, "version": "x/1", "available_space": 7},
        {"id": "v0-c", "nickname": "c", "reachable": True, "version": "y", "available_space": None},
    ]


@pytest.mark.parametrize("data", [None, [], {}, {"introducers": {"statuses": []}, "servers": [1]}])
def test_invalid_state_is_refused(data: object) -> None:
    with pytest.raises(GatewayError):
        parse_state(data)
