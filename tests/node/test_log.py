"""The log of a node."""

from __future__ import annotations

import io

from twisted.logger import Logger, LogPublisher
from twisted.python.failure import Failure

from grid.node.log import LineLog


def _written(message: str, level: str = "info") -> str:
    stream = io.StringIO()
    log = Logger(observer=LogPublisher(LineLog(stream)))
    getattr(log, level)("{message}", message=message)
    return stream.getvalue()


def test_event_is_one_line_with_its_time_and_without_secrets() -> None:
    line = _written("a\nb URI:CHK:secret pb://x@y/z")
    stamp, _, text = line.partition(" ")
    assert text == "a b URI:... pb:...\n"
    assert stamp.count("-") >= 2


def test_debug_events_are_left_out() -> None:
    assert _written("x", "debug") == ""


def test_failure_is_shown_without_secrets() -> None:
    stream = io.StringIO()
    log = Logger(observer=LogPublisher(LineLog(stream)))
    log.failure("it failed", failure=Failure(ValueError("URI:CHK:secret")))
    assert "ValueError" in stream.getvalue()
    assert "secret" not in stream.getvalue()


def test_log_that_cannot_be_written_stops_nobody() -> None:
    stream = io.StringIO()
    stream.close()
    LineLog(stream).say("x")
