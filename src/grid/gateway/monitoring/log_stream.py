"""The node's log for programs: one JSON object per event, without secrets. [spec webapi 9.6]

Owns the bound on events buffered for a slow reader: beyond it, events are dropped, and their number is reported.
"""

from __future__ import annotations

import json
from collections import deque

from twisted.internet.defer import Deferred
from twisted.logger import ILogObserver, LogEvent, LogLevel, LogPublisher, formatEvent, globalLogPublisher
from zope.interface import implementer

from grid.gateway.faults import without_secrets

MAX_READERS = 10
"""Programs that may follow the log at once."""

MAX_WAITING_EVENTS = 1000
"""Events buffered for each of them."""

MAX_TEXT = 4096
"""Characters kept of a message."""


class LogReader:
    """One program that follows the log."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()
        self._lost = 0
        self._waiter: Deferred[None] | None = None
        self._is_nudged = False
        self.is_over = False

    def nudge(self) -> None:
        """Make next() return, even without an event."""
        self._is_nudged = True
        self._wake()

    def put(self, text: str) -> None:
        """Queue an event."""
        if len(self._waiting) >= MAX_WAITING_EVENTS:
            self._lost += 1
            return
        self._waiting.append(text)
        self._wake()

    def end(self) -> None:
        """End the stream."""
        self.is_over = True
        self._wake()

    async def next(self) -> str | None:
        """Wait for the next event; "" after a nudge, None at the end."""
        while not self._waiting:
            if self._is_nudged:
                self._is_nudged = False
                return ""
            if self.is_over:
                return None
            if self._lost:
                lost, self._lost = self._lost, 0
                return json.dumps({"level": "warn", "namespace": "grid.gateway", "message": f"{lost} events were lost"})
            self._waiter = Deferred()
            await self._waiter
        return self._waiting.popleft()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.called:
            waiter.callback(None)


@implementer(ILogObserver)
class LogStreams:
    """All readers of the log. Listens to the log only while there are any."""

    def __init__(self, publisher: LogPublisher = globalLogPublisher) -> None:
        self._publisher = publisher
        self._readers: set[LogReader] = set()

    @property
    def is_full(self) -> bool:
        """Whether the limit on readers is reached."""
        return len(self._readers) >= MAX_READERS

    def add(self, reader: LogReader) -> None:
        """Add a reader."""
        if not self._readers:
            self._publisher.addObserver(self)
        self._readers.add(reader)

    def remove(self, reader: LogReader) -> None:
        """Remove a reader."""
        reader.end()
        self._readers.discard(reader)
        if not self._readers:
            self._publisher.removeObserver(self)

    def close(self) -> None:
        """End all streams, because the gateway shuts down."""
        for reader in list(self._readers):
            self.remove(reader)

    def __call__(self, event: LogEvent) -> None:
        """Pass the event to every reader."""
        text = pack_log_event(event)
        for reader in list(self._readers):
            reader.put(text)


def pack_log_event(event: LogEvent) -> str:
    """Pack an event as a line of JSON: time, level, source and text, with secrets removed."""
    level = event.get("log_level", LogLevel.info)
    failure = event.get("log_failure")
    found: dict[str, object] = {
        "time": event.get("log_time"),
        "level": getattr(level, "name", "info"),
        "namespace": without_secrets(str(event.get("log_namespace", ""))),
        "message": without_secrets(formatEvent(event))[:MAX_TEXT],
    }
    if failure is not None:
        found["failure"] = getattr(failure.type, "__name__", "")
    return json.dumps(found)
