"""A node's log on stdout, without capabilities: one line of text or JSON per event.

[node] log_format selects the form. A JSON line has `time` (ISO 8601 with the offset from UTC), `level`, `event` (the
message as in the text form), `namespace` (the source), and `fields`: the event's values by name.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from string import Formatter
from typing import TextIO

from twisted.logger import ILogObserver, LogEvent, LogLevel, formatEvent
from zope.interface import implementer

from grid.node.config import LogFormat
from grid.node.redaction import one_line, redact

_SHOWN = (LogLevel.info, LogLevel.warn, LogLevel.error, LogLevel.critical)

_LISTENING = re.compile(r"\S+ starting on \S+|\((TCP|UNIX) Port \S+ Closed\)")
"""What Twisted says of every port, whether or not its factory is noisy. The node names its addresses itself."""

MAX_FIELD = 1024
"""Characters kept of one value."""

MAX_FIELDS = 32

_PLAIN = frozenset({str, int, float})

Field = str | int | float | bool | None


@implementer(ILogObserver)
class NodeLog:
    """Writes Twisted's log events and the node's own messages."""

    def __init__(self, format: LogFormat = "text", stream: TextIO | None = None) -> None:
        """stream: stdout, except in tests."""
        self._format = format
        self._stream = stream or sys.stdout
        self._held: list[str] | None = None

    def hold(self) -> None:
        """Buffer lines until `release`: a node that cannot start shows one error and no log."""
        self._held = []

    def release(self) -> None:
        """Write the buffered lines, and every further line at once."""
        held, self._held = self._held, None
        for line in held or ():
            self._put(line)

    def __call__(self, event: LogEvent) -> None:
        """Write the event's line. An error's traceback follows it in text, and is part of it in JSON."""
        level = event.get("log_level")
        if level not in _SHOWN:
            return
        text = one_line(text_of(event))
        if event.get("log_namespace") == "log_legacy" and _LISTENING.fullmatch(text):
            return
        failure = event.get("log_failure")
        trace = redact(failure.getTraceback()) if failure is not None else ""
        if self._format == "json":
            fields = fields_of(event)
            if failure is not None:
                fields |= {"error": getattr(failure.type, "__name__", ""), "traceback": trace}
            if text or fields:
                self._write_json(level.name, text, one_line(str(event.get("log_namespace", ""))), fields)
            return
        if text:
            self._write_text(text)
        if trace:
            self._put(trace)

    def say(self, text: str) -> None:
        """Write a message of the node itself."""
        if self._format == "json":
            self._write_json("info", one_line(text), "grid.node", {})
        else:
            self._write_text(one_line(text))

    def _write_text(self, text: str) -> None:
        self._put(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {text}\n")

    def _write_json(self, level: str, text: str, namespace: str, fields: Mapping[str, Field]) -> None:
        now = datetime.now().astimezone().isoformat(timespec="milliseconds")
        found = {"time": now, "level": level, "event": text, "namespace": namespace, "fields": fields}
        self._put(json.dumps(found, allow_nan=False) + "\n")

    def _put(self, line: str) -> None:
        if self._held is not None:
            self._held.append(line)
            return
        try:
            self._stream.write(line)
            self._stream.flush()
        except (OSError, ValueError):
            # The reader has gone or the disk is full: the node continues without a log.
            pass


def text_of(event: LogEvent) -> str:
    """The event as text, as Twisted makes it. Its own formatting takes ten times as long, and is left all but plain values."""
    format = event.get("log_format")
    names = _names_of(format) if isinstance(format, str) else None
    if names is not None and all(type(event.get(name)) in _PLAIN for name in names):
        try:
            return str(format).format_map(event)
        except ValueError:
            pass  # Twisted's text says what is wrong.
    return formatEvent(event)


@lru_cache(maxsize=256)
def _names_of(format: str) -> Sequence[str] | None:
    """The names of the values in a format string; None unless all are plain names, and none is formatted by another value."""
    try:
        fields = [(name, spec) for _, name, spec, _ in Formatter().parse(format) if name is not None]
    except ValueError:
        return None
    return (
        [name for name, _ in fields]
        if all(name.isidentifier() and "{" not in (spec or "") for name, spec in fields)
        else None
    )


def fields_of(event: LogEvent) -> dict[str, Field]:
    """The values that the event's format string shows, by name and without secrets. Others could be anything."""
    format = event.get("log_format")
    if not isinstance(format, str):
        return {}
    try:
        names = [name for _, name, _, _ in Formatter().parse(format) if name]
    except ValueError:
        return {}
    shown = (name for name in names if name.isidentifier() and name in event)
    return {name: _plain(event[name]) for name, _ in zip(dict.fromkeys(shown), range(MAX_FIELDS), strict=False)}


def _plain(value: object) -> Field:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return one_line(str(value))[:MAX_FIELD]
