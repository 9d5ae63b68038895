"""Running operations as they come on, told to browsers as server-sent events.

Owns the bounds: how many listen at once, what is kept for one that is slow (the last state of each operation and no
more), and how long it may take nothing before it is cut. Every listener is told first what runs now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from twisted.internet.defer import Deferred

from grid.errors import PeerTimeoutError
from grid.gateway.faults import ServiceUnavailable
from grid.gateway.history.history import History
from grid.gateway.history.operation import Operation
from grid.gateway.http.answers import StreamedAnswer
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
            raise ServiceUnavailable("too many listen already", headers=(("Retry-After", "30"),))
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
        await with_deadline(self._clock, sink.write(data), SLOW_S, lambda: PeerTimeoutError("a listener takes nothing"))


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
