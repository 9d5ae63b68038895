"""What `grid status --gateway` makes of a gateway's answer."""

from __future__ import annotations

from typing import cast

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


def test_state_of_a_gateway_that_knows_more_says_how_far_servers_are_and_what_their_clocks_show() -> None:
    server = {"nodeid": "v0-a", "nickname": "a", "connection_status": "Connected to tcp:h:1 via http", "version": "x"}

    def known(**more: object) -> dict[str, object]:
        [found] = cast(
            "list[dict[str, object]]",
            parse_state({"introducers": {"statuses": []}, "servers": [{**server, **more}]})["servers"],
        )
        return {name: value for name, value in found.items() if name in ("seconds", "transport", "clock_ahead")}

    assert known(round_trip=0.0123, transport="http", clock_ahead=-320) == {
        "seconds": 0.0123,
        "transport": "http",
        "clock_ahead": -320,
    }
    assert known() == known(round_trip=-1.0, transport=7, clock_ahead=True) == {}
    assert known(round_trip=float("nan"), clock_ahead=10**400) == known(round_trip=1e300, clock_ahead=0.5) == {}


@pytest.mark.parametrize("data", [None, [], {}, {"introducers": {"statuses": []}, "servers": [1]}])
def test_invalid_state_is_refused(data: object) -> None:
    with pytest.raises(GatewayError):
        parse_state(data)
