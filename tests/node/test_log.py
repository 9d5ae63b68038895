"""The log of a node."""

from __future__ import annotations

import io
import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet import reactor as global_reactor
from twisted.internet.protocol import Factory
from twisted.logger import Logger, LogLevel, LogPublisher, formatEvent, globalLogPublisher
from twisted.python.failure import Failure

from grid.node.config import LogFormat
from grid.node.log import MAX_FIELD, MAX_FIELDS, NodeLog, text_of

reactor: Any = global_reactor


def _written(message: str, level: str = "info") -> str:
    stream = io.StringIO()
    log = Logger(observer=LogPublisher(NodeLog(stream=stream)))
    getattr(log, level)("{message}", message=message)
    return stream.getvalue()


def test_event_is_one_line_with_its_time_and_without_secrets() -> None:
    line = _written("a\nb URI:CHK:secret pb://x@y/z")
    stamp, _, text = line.partition(" ")
    assert text == "a b URI:... pb:...\n"
    assert stamp.count("-") >= 2


class Failing:
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    "format",
    [
        "{n} of {a:.0f} ms",
        "{call()}",
        "{missing}",
        "{failing}",
        "{n:{a}}",
        "{n:x>{failing}}",
        "{n:s}",
        "{n!r}",
        "{",
        "{0}",
        "{}",
        "{a.real}",
        "100 %",
        "",
    ],
)
def test_text_of_an_event_is_what_twisted_makes_of_it(format: str) -> None:
    event = {"log_format": format, "n": 3, "a": 2.5, "call": lambda: "called", "failing": Failing()}
    assert text_of(event) == formatEvent(event)


def test_debug_events_are_left_out() -> None:
    assert _written("x", "debug") == ""


@pytest.mark.parametrize("format", ["text", "json"])
@pytest.mark.parametrize("message", ["S3Factory starting on 9000", "(TCP Port 9000 Closed)"])
def test_ports_of_twisted_are_left_out(format: LogFormat, message: str) -> None:
    stream = io.StringIO()
    shown = NodeLog(format, stream)
    legacy = {"log_level": LogLevel.info, "log_namespace": "log_legacy", "log_format": "{log_text}"}
    shown({**legacy, "log_text": message})
    assert stream.getvalue() == ""
    shown({**legacy, "log_text": f"{message} because of something"})
    shown({**legacy, "log_namespace": "grid.s3", "log_text": message})
    assert stream.getvalue().count(message) == (4 if format == "json" else 2)


async def test_port_that_opens_and_closes_leaves_nothing_in_the_log() -> None:
    stream = io.StringIO()
    observer = NodeLog(stream=stream)
    globalLogPublisher.addObserver(observer)
    try:
        port = reactor.listenTCP(0, Factory(), interface="127.0.0.1")
        await port.stopListening()
    finally:
        globalLogPublisher.removeObserver(observer)
    assert "Port" not in stream.getvalue() and "starting on" not in stream.getvalue()


def test_failure_is_shown_without_secrets() -> None:
    stream = io.StringIO()
    log = Logger(observer=LogPublisher(NodeLog(stream=stream)))
    log.failure("it failed", failure=Failure(ValueError("URI:CHK:secret")))
    assert "ValueError" in stream.getvalue()
    assert "secret" not in stream.getvalue()


def test_log_that_cannot_be_written_stops_nobody() -> None:
    stream = io.StringIO()
    stream.close()
    NodeLog(stream=stream).say("x")


def _written_json(message: str, level: str = "info", **fields: Any) -> list[dict[str, Any]]:
    stream = io.StringIO()
    log = Logger("grid.some", observer=LogPublisher(NodeLog("json", stream)))
    getattr(log, level)(message, **fields)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_event_in_json_is_one_object_with_its_values() -> None:
    [found] = _written_json(
        "{method} took {ms:.1f} ms, {why}", "warn", method="GET", ms=2.25, why=None, unused=object()
    )
    assert found.keys() == {"time", "level", "event", "namespace", "fields"}
    assert datetime.fromisoformat(found["time"]).tzinfo is not None
    assert (found["level"], found["namespace"]) == ("warn", "grid.some")
    assert found["event"] == "GET took 2.2 ms, None"
    assert found["fields"] == {"method": "GET", "ms": 2.25, "why": None}


def test_event_in_json_has_no_secret_and_no_second_line() -> None:
    cap = "URI:DIR2:aaaasecretaaaa:bbbb"
    [found] = _written_json("got {what} and {number}", what=f"a\nb {cap} pb://tub@secret/swissnum", number=float("nan"))
    assert found["fields"] == {"what": "a b URI:... pb:...", "number": None}
    assert "secret" not in json.dumps(found)
    [found] = _written_json(f"{cap.replace(':', '%3A')} priv-v0-secret")
    assert "secret" not in json.dumps(found)


def test_event_in_json_that_is_long_or_wide_is_cut() -> None:
    [found] = _written_json("{long}", long="x" * 5000)
    assert len(found["fields"]["long"]) == MAX_FIELD
    many: dict[str, Any] = {f"n{number}": number for number in range(MAX_FIELDS + 10)}
    [found] = _written_json(" ".join(f"{{{name}}}" for name in many), **many)
    assert len(found["fields"]) == MAX_FIELDS


def test_failure_in_json_is_a_field_without_secrets() -> None:
    stream = io.StringIO()
    log = Logger(observer=LogPublisher(NodeLog("json", stream)))
    log.failure("it failed", failure=Failure(ValueError("URI:CHK:secret")))
    [found] = map(json.loads, stream.getvalue().splitlines())
    assert (found["level"], found["event"], found["fields"]["error"]) == ("critical", "it failed", "ValueError")
    assert "ValueError" in found["fields"]["traceback"]
    assert "secret" not in stream.getvalue()


def test_debug_events_are_left_out_of_json_too() -> None:
    assert _written_json("x", "debug") == []


def test_what_the_node_says_is_json_too() -> None:
    stream = io.StringIO()
    NodeLog("json", stream).say("client running")
    found = json.loads(stream.getvalue())
    assert (found["event"], found["level"], found["fields"]) == ("client running", "info", {})


@given(st.text(max_size=60), st.one_of(st.text(max_size=40), st.integers(), st.floats(), st.binary(max_size=9)))
def test_any_event_in_json_is_at_most_one_object(format: str, value: object) -> None:
    stream = io.StringIO()
    NodeLog("json", stream)({"log_level": LogLevel.info, "log_format": format, "a": value})
    assert [type(json.loads(line)) for line in stream.getvalue().splitlines()] in ([], [dict])
