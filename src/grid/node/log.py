"""A node's log: one line for each event, with the time, on stdout, without capabilities."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from twisted.logger import ILogObserver, LogEvent, LogLevel, formatEvent
from zope.interface import implementer

from grid.node.redaction import one_line, redact

_SHOWN = (LogLevel.info, LogLevel.warn, LogLevel.error, LogLevel.critical)


@implementer(ILogObserver)
class LineLog:
    """Takes Twisted's log events, and what the node itself has to say."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """stream: stdout, unless a test wants to read it."""
        self._stream = stream or sys.stdout

    def __call__(self, event: LogEvent) -> None:
        """Write the event's line; an error's traceback follows it."""
        if event.get("log_level") not in _SHOWN:
            return
        text = one_line(formatEvent(event))
        if text:
            self._write(text)
        failure = event.get("log_failure")
        if failure is not None:
            self._stream.write(redact(failure.getTraceback()))
            self._stream.flush()

    def say(self, text: str) -> None:
        """Write a line of the node's own."""
        self._write(one_line(text))

    def _write(self, text: str) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        try:
            self._stream.write(f"{stamp} {text}\n")
            self._stream.flush()
        except (OSError, ValueError):
            # Nobody reads the log any more, or its disk is full: the node goes on without.
            pass
