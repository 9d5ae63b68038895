"""One grid with a web gateway of each program, and exchanges sent to both."""

from __future__ import annotations

import json
import time
import urllib.parse
from collections.abc import Mapping

from attrs import field, frozen

from perf.processes.clients import WebClient
from perf.processes.node_process import POLL_S, wait_until
from perf.processes.process_grid import ProcessGrid
from tests.interop.exchange_stage import Sides, make_sides
from tests.support.exchanges import ANSWER_S, HANG_S, Exchange, Reply, send


@frozen(kw_only=True)
class Gateways:
    """Both on the same grid, with the same encoding and secrets."""

    grid: ProcessGrid
    tahoe: WebClient
    ours: WebClient
    _made: list[Sides] = field(factory=list)

    @property
    def sides(self) -> Sides:
        """What exchanges are about, made when it is first asked for."""
        if not self._made:
            self._made.append(make_sides(self.grid, self.tahoe))
        return self._made[0]


def ask(client: WebClient, exchange: Exchange, caps: Mapping[str, str], *, may_hang: bool) -> Reply:
    """A gateway's answer; an operation that it starts has finished when this returns."""
    reply = send(client.url, exchange.request_bytes(caps), HANG_S if may_hang else ANSWER_S)
    if reply.status == 302 and "ophandle=" in exchange.target and "cancelled" not in exchange.target:
        handle = urllib.parse.parse_qs(exchange.target.partition("?")[2])["ophandle"][0]
        wait_until(lambda: _finished(client, handle), f"the operation {handle}")
    return reply


def _finished(client: WebClient, handle: str) -> bool:
    reply = send(
        client.url,
        f"GET /operations/{handle}?output=JSON HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode(),
    )
    time.sleep(POLL_S)
    return reply.status != 200 or bool(json.loads(reply.body)["finished"])
