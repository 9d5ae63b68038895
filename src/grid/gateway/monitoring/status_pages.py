"""`/status`: what the gateway does and did, for programs and for people. [spec webapi 9.2]"""

from __future__ import annotations

from collections.abc import Mapping

from grid.gateway.faults import BadRequest, NotFound
from grid.gateway.gateway import Gateway
from grid.gateway.history.operation import KIND_OF, Operation
from grid.gateway.http.answers import Answer, AnyAnswer, json_answer, modern_json
from grid.gateway.http.exchange import Exchange
from grid.gateway.http.routing import Handler, allow

MAX_NUMBER_DIGITS = 12


def routes(gateway: Gateway, pages: Mapping[str, Handler]) -> Mapping[str, Handler]:
    """`/status` and what is below it. pages: `status` and `operation`, for people."""

    async def status(exchange: Exchange) -> AnyAnswer:
        allow(exchange, "GET", "HEAD", "POST")
        await exchange.form()
        segments = exchange.segments[1:]
        if not any(segments):
            if wants_json(exchange):
                return _all(gateway)
            return await pages["status"](exchange)
        allow(exchange, "GET", "HEAD")
        if segments[0] == "events" and len(segments) == 1:
            return Answer(200, "text/event-stream") if exchange.method == "HEAD" else gateway.streams.answer()
        operation = find_operation(gateway, segments[0])
        match segments[1:]:
            case () | ("",):
                if wants_json(exchange):
                    return _one(operation)
                return await pages["operation"](exchange)
            case ("event_json",) if operation.kind == "download":
                return json_answer(event_json(operation))
        raise NotFound("there is no such page", shape="page")

    return {"status": status}


def wants_json(exchange: Exchange) -> bool:
    """Whether a program asks."""
    return exchange.arguments.t.lower() == "json"


def find_operation(gateway: Gateway, name: str) -> Operation:
    """The operation of `/status/KIND-N`; BadRequest for what is no such name, NotFound if it is not kept."""
    short, dash, number = name.partition("-")
    if not dash or not (number.isascii() and number.isdigit() and len(number) <= MAX_NUMBER_DIGITS):
        raise BadRequest("operations are called KIND-NUMBER", shape="page")
    kind = KIND_OF.get(short)
    found = gateway.history.find(kind, int(number)) if kind is not None else None
    if found is None:
        raise NotFound("there is no such operation, or it was too long ago", shape="page")
    return found


def _all(gateway: Gateway) -> Answer:
    return modern_json(
        {
            "active": [each.to_json() for each in gateway.history.active],
            "recent": [each.to_json() for each in gateway.history.recent],
        },
        headers={"Cache-Control": "no-store"},
    )


def _one(operation: Operation) -> Answer:
    return modern_json(operation.to_whole_json(), headers={"Cache-Control": "no-store"})


_LISTS = {"FindShares": "dyhb", "ReadShares": "block"}
"""Requests by where 1.20 puts them."""


def event_json(operation: Operation) -> dict[str, object]:
    """The timeline of a download as 1.20's profiler gets it: times are seconds since it began."""
    lists: dict[str, list[object]] = {name: [] for name in ("misc", "read", "segment", "dyhb", "block")}
    rows = operation.timeline.rows
    servers = sorted({row.server_id for row in rows if row.server_id})
    row_numbers: dict[tuple[str, tuple[int, ...]], int] = {}
    for row in rows:
        place = row_numbers.setdefault((row.server_id, row.share_numbers), len(row_numbers))
        lists[_LISTS.get(row.what, "misc")].append(
            {
                "row": place,
                "what": row.what,
                "serverid": row.server_id,
                "shnum": row.share_numbers[0] if row.share_numbers else None,
                "length": row.count,
                "start_time": row.began_s,
                "finish_time": row.ended_s,
                "success": row.outcome == "answer",
                "half_way": None,
            }
        )
    ends = [row.ended_s for row in rows if row.ended_s is not None]
    lists["read"].append(
        {"row": 0, "length": operation.size or 0, "bytes_returned": operation.count, "start_time": 0.0}
    )
    return {
        **lists,
        "block_rownums": list(range(len(row_numbers))),
        "server_info": {name: {"short": name[:11], "color": ""} for name in servers},
        "num_serverids": len(servers),
        "serverids": servers,
        "bounds": {"min": 0.0, "max": max(ends, default=0.0)},
    }
