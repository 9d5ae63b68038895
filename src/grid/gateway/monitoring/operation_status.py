"""`/status`: recent and running operations as pages, JSON, and a stream of server-sent events. [spec webapi 9.2]

Owns the bounds on event streams: how many clients may listen, what is kept for a slow one (the latest state of each
operation), and how long it may accept nothing before it is disconnected. Each first gets the operations running now.
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
from grid.gateway.pages.operation_list import NameOf, parse_choice, render_operations
from grid.gateway.pages.operations import render_operation
from grid.gateway.shared.services import Services
from grid.ports import Clock, Sink, Timer
from grid.runtime import with_deadline

MAX_LISTENERS = 50
"""Browsers that may listen at once; each holds a connection."""

HEARTBEAT_S = 15.0
"""Seconds between comments on an idle stream: proxies and browsers drop connections that are silent for a minute."""

SLOW_S = 30.0
"""Seconds that a listener may accept nothing."""

RETRY_MS = 3000
"""Milliseconds after which a browser reconnects."""


class EventStreams:
    """All listeners."""

    def __init__(self, history: History, clock: Clock) -> None:
        self._history = history
        self._clock = clock
        self._listeners: set[_Listener] = set()
        self._is_closed = False

    @property
    def count(self) -> int:
        """The number of listeners."""
        return len(self._listeners)

    def close(self) -> None:
        """End all streams, because the gateway shuts down."""
        self._is_closed = True
        for listener in list(self._listeners):
            listener.end()

    def answer(self) -> StreamedAnswer:
        """Return the stream of a new listener; ServiceUnavailable if there are too many."""
        if self.count >= MAX_LISTENERS or self._is_closed:
            raise ServiceUnavailable(
                "too many clients are listening; try again later", headers=(("Retry-After", "30"),)
            )
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
            self._clock, sink.write(data), SLOW_S, lambda: PeerTimeoutError("the client stopped reading the events")
        )


class _Listener:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed: dict[str, Operation] = {}
        self._waiter: Deferred[None] | None = None
        self.is_over = False

    def note(self, operation: Operation) -> None:
        """Note that the operation changed. Its state is read when it is sent."""
        self._changed[operation.key] = operation
        self._wake()

    def end(self) -> None:
        """End the stream."""
        self.is_over = True
        self._wake()

    async def next(self) -> bytes:
        """Wait for the next bytes to send: an event, or a comment after HEARTBEAT_S."""
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
    """Pack one event; its JSON contains no line feeds."""
    return f"event: {name}\ndata: {json.dumps(value)}\n\n".encode("ascii")


MAX_NUMBER_DIGITS = 12


def routes(gateway: Services, streams: EventStreams) -> Mapping[str, Handler]:
    """Handlers of `/status` and everything below it."""

    async def status(exchange: Exchange) -> AnyAnswer:
        allow(exchange, "GET", "HEAD", "POST")
        await exchange.form()
        segments = exchange.segments[1:]
        if not any(segments):
            if wants_json(exchange):
                return _all(gateway)
            history, choice = gateway.history, parse_choice(exchange.arguments.shown)
            now = gateway.store.runtime.clock.now()
            return page(render_operations(history.active, history.recent, now, choice, _names_for(exchange)))
        allow(exchange, "GET", "HEAD")
        if segments[0] == "events" and len(segments) == 1:
            return Answer(200, "text/event-stream") if exchange.method == "HEAD" else streams.answer()
        operation = find_operation(gateway, segments[0])
        match segments[1:]:
            case () | ("",):
                if wants_json(exchange):
                    return _one(operation)
                name_of = _names_for(exchange)
                name = name_of(operation) if name_of is not None else ""
                return page(render_operation(operation, server_names(gateway), name))
            case ("event_json",) if operation.kind == "download":
                return json_answer(event_json(operation))
        raise NotFound("there is no such page", shape="page")

    return {"status": status}


def server_names(gateway: Services) -> dict[str, str]:
    """Nicknames of servers by their ids."""
    return {server.server_id: server.nickname for server in gateway.client.servers() if server.nickname}


def _names_for(exchange: Exchange) -> NameOf | None:
    """What to call the objects of operations; None if this client may not see names."""
    gateway = exchange.gateway
    if not exchange.is_own:
        return None

    def name_of(operation: Operation) -> str:
        index = operation.storage_index
        return (gateway.home.alias_of(index) if index else None) or gateway.history.names.find(index)

    return name_of


def wants_json(exchange: Exchange) -> bool:
    """Whether the client wants JSON."""
    return exchange.arguments.t.lower() == "json"


def find_operation(gateway: Services, name: str) -> Operation:
    """The operation of `/status/KIND-N`; BadRequest for a malformed name, NotFound if it is no longer kept."""
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
"""The list of 1.20's document in which each kind of request appears."""


def event_json(operation: Operation) -> dict[str, object]:
    """The timeline of a download in the format of 1.20's profiler. Times are seconds since its start."""
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
