"""`/status`: recent and running operations, as pages, as JSON, and as a stream of server-sent events. [spec webapi 9.2]

Owns the bounds on event streams: how many listen at once, what is kept for a slow listener (the last state of each
operation), and how long it may take nothing before it is cut. Each listener first gets the operations running now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from twisted.internet.defer import Deferred

from grid.errors import PeerTimeoutError
from grid.gateway.faults import BadRequest, NotFound, ServiceUnavailable
from grid.gateway.history.history import History
from grid.gateway.history.operation import KIND_OF, Operation
from grid.gateway.http.answers import Answer, AnyAnswer, StreamedAnswer, json_answer, modern_json, page
from grid.gateway.http.exchange import Exchange
from grid.gateway.http.routing import Handler, allow
from grid.gateway.pages.operations import render_operation, render_operations
from grid.gateway.shared.services import Services
from grid.ports import Clock, Sink, Timer
from grid.runtime import with_deadline

MAX_LISTENERS = 50
"""Browsers that listen at once; each is one connection."""

HEARTBEAT_S = 15.0
"""Proxies and browsers give up connections on which nothing comes for a minute."""

SLOW_S = 30.0
"""How long a listener may take nothing."""

RETRY_MS = 3000
"""After how long a browser connects again."""


class EventStreams:
    """All who listen."""

    def __init__(self, history: History, clock: Clock) -> None:
        self._history = history
        self._clock = clock
        self._listeners: set[_Listener] = set()
        self._is_closed = False

    @property
    def count(self) -> int:
        """How many listen."""
        return len(self._listeners)

    def close(self) -> None:
        """End them all: the gateway closes down."""
        self._is_closed = True
        for listener in list(self._listeners):
            listener.end()

    def answer(self) -> StreamedAnswer:
        """The stream for one more; ServiceUnavailable if there are too many."""
        if self.count >= MAX_LISTENERS or self._is_closed:
            raise ServiceUnavailable("too many clients listen already", headers=(("Retry-After", "30"),))
        headers = (("Cache-Control", "no-store"), ("X-Accel-Buffering", "no"))
        return StreamedAnswer(200, "text/event-stream; charset=utf-8", None, headers, self._tell)

    async def _tell(self, sink: Sink) -> None:
        listener = _Listener(self._clock)
        self._listeners.add(listener)
        stop = self._history.watch(listener.note)
        try:
            for operation in reversed(self._history.active):
                listener.note(operation)
            await self._write(sink, f"retry: {RETRY_MS}\n\n".encode("ascii"))
            while not listener.is_over:
                await self._write(sink, await listener.next())
        finally:
            stop()
            listener.end()
            self._listeners.discard(listener)

    async def _write(self, sink: Sink, data: bytes) -> None:
        await with_deadline(
            self._clock, sink.write(data), SLOW_S, lambda: PeerTimeoutError("nothing may be sent on this connection")
        )


class _Listener:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed: dict[str, Operation] = {}
        self._waiter: Deferred[None] | None = None
        self.is_over = False

    def note(self, operation: Operation) -> None:
        """Something happened to it; its state is looked at when it is sent."""
        self._changed[operation.key] = operation
        self._wake()

    def end(self) -> None:
        """No more."""
        self.is_over = True
        self._wake()

    async def next(self) -> bytes:
        """What to send, after a while a comment if there is nothing."""
        if not self._changed and not self.is_over:
            self._waiter = Deferred()
            timer: Timer = self._clock.call_later(HEARTBEAT_S, self._wake)
            try:
                await self._waiter
            finally:
                self._waiter = None
                timer.cancel()
        if not self._changed:
            return b": still here\n\n"
        changed, self._changed = self._changed, {}
        return b"".join(pack_event("operation", each.to_json()) for each in changed.values())

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.called:
            waiter.callback(None)


def pack_event(name: str, value: Mapping[str, object]) -> bytes:
    """One event; JSON has no line feeds in it."""
    return f"event: {name}\ndata: {json.dumps(value)}\n\n".encode("ascii")


MAX_NUMBER_DIGITS = 12


def routes(gateway: Services, streams: EventStreams) -> Mapping[str, Handler]:
    """`/status` and everything below it."""

    async def status(exchange: Exchange) -> AnyAnswer:
        allow(exchange, "GET", "HEAD", "POST")
        await exchange.form()
        segments = exchange.segments[1:]
        if not any(segments):
            if wants_json(exchange):
                return _all(gateway)
            return page(
                render_operations(gateway.history.active, gateway.history.recent, gateway.store.runtime.clock.now())
            )
        allow(exchange, "GET", "HEAD")
        if segments[0] == "events" and len(segments) == 1:
            return Answer(200, "text/event-stream") if exchange.method == "HEAD" else streams.answer()
        operation = find_operation(gateway, segments[0])
        match segments[1:]:
            case () | ("",):
                if wants_json(exchange):
                    return _one(operation)
                return page(render_operation(operation, server_names(gateway)))
            case ("event_json",) if operation.kind == "download":
                return json_answer(event_json(operation))
        raise NotFound("there is no such page", shape="page")

    return {"status": status}


def server_names(gateway: Services) -> dict[str, str]:
    """Nicknames of servers by their ids."""
    return {server.server_id: server.nickname for server in gateway.client.servers() if server.nickname}


def wants_json(exchange: Exchange) -> bool:
    """Whether a program asks."""
    return exchange.arguments.t.lower() == "json"


def find_operation(gateway: Services, name: str) -> Operation:
    """The operation of `/status/KIND-N`; BadRequest for what is no such name, NotFound if it is not kept."""
    short, dash, number = name.partition("-")
    if not dash or not (number.isascii() and number.isdigit() and len(number) <= MAX_NUMBER_DIGITS):
        raise BadRequest("an operation is named KIND-NUMBER", shape="page")
    kind = KIND_OF.get(short)
    found = gateway.history.find(kind, int(number)) if kind is not None else None
    if found is None:
        raise NotFound("there is no such operation, or it is too old", shape="page")
    return found


def _all(gateway: Services) -> Answer:
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
        {"row": 0, "length": operation.size or 0, "bytes_returned": operation.progress.count, "start_time": 0.0}
    )
    return {
        **lists,
        "block_rownums": list(range(len(row_numbers))),
        "server_info": {name: {"short": name[:11], "color": ""} for name in servers},
        "num_serverids": len(servers),
        "serverids": servers,
        "bounds": {"min": 0.0, "max": max(ends, default=0.0)},
    }
