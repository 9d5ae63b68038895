"""Requests of monitors to a running gateway: status, statistics, events, the log."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from twisted.logger import Logger

from grid.errors import NotHappyError
from grid.gateway.http.answers import AnyAnswer, text_answer
from grid.gateway.http.exchange import Exchange
from grid.gateway.monitoring.monitoring_resource import read_static
from grid.ports import Event
from grid.runtime import Tasks
from tests.gateway.rig import TOKEN, Rig, Wire, running_gateway

INDEX = bytes(range(16))


async def _ask_json(rig: Rig, path: str) -> Any:
    reply = await rig.ask("GET", path)
    assert reply.status == 200
    return json.loads(reply.body)


async def test_status_when_something_was_done_then_lists_it_and_shows_it(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        history = rig.gateway.history
        with history.download(INDEX, 1000):
            history.observe(Event(at=0.0, what="progress", count=500, total=1000))
            assert (await _ask_json(rig, "/status?t=json"))["active"][0]["progress"] == 0.5
        found = await _ask_json(rig, "/status/?t=json")
        assert [(each["type"], each["total-size"]) for each in found["recent"]] == [("download", 1000)]
        assert (await rig.ask("POST", "/status?t=json")).status == 200
        assert (await _ask_json(rig, "/status/down-0?t=json"))["outcome"] == "done"
        assert (await _ask_json(rig, "/status/down-0/event_json"))["num_serverids"] == 0
        for page in ("/status", "/status/down-0"):
            assert (await rig.ask("GET", page)).headers["content-type"].startswith("text/html")
        for path, status in (("down-7", 404), ("down", 400), ("down-x", 400), ("sideways-1", 404), ("down-0/no", 404)):
            assert (await rig.ask("GET", f"/status/{path}")).status == status


async def test_statistics_when_asked_then_come_in_every_form(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        with rig.gateway.history.upload(INDEX, 100):
            pass
        found = await _ask_json(rig, "/statistics?t=json")
        assert found["counters"] == {"uploader.files_uploaded": 1, "uploader.bytes_uploaded": 100}
        assert found["stats"]["node.uptime"] > 0
        lines = (await rig.ask("GET", "/statistics?t=openmetrics")).body.decode().splitlines()
        assert "tahoe_counters_uploader_bytes_uploaded 100" in lines
        assert lines[-1] == "# EOF"
        assert (await rig.ask("GET", "/statistics")).headers["content-type"].startswith("text/html")
        assert (await rig.ask("GET", "/statistics?t=xml")).status == 400


async def test_metrics_when_scraped_then_count_what_was_done_and_how(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        with rig.gateway.history.upload(INDEX, 100):
            pass
        with pytest.raises(NotHappyError), rig.gateway.history.upload(INDEX, 100):
            raise NotHappyError("too few servers")
        text = (await rig.ask("GET", "/metrics")).body.decode()
        assert 'grid_operations_total{kind="upload",outcome="done"} 1.0' in text
        assert 'grid_operations_total{kind="upload",outcome="failed"} 1.0' in text
        assert 'grid_operation_bytes_total{kind="upload"} 100.0' in text
        assert "grid_happiness_margin -7.0" in text


async def test_storage_and_helper_when_there_are_none_then_say_so(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        assert (await rig.ask("GET", "/storage?t=json")).status == 404
        assert b"No storage server" in (await rig.ask("GET", "/storage")).body
        assert await _ask_json(rig, "/helper_status?t=json") == {}
        assert (await rig.ask("GET", "/storage-plugins/any")).status == 404


async def test_incident_when_reported_then_is_kept_without_secrets_up_to_a_bound(tmp_path: Path) -> None:
    directory = tmp_path / "incidents"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    async with running_gateway(tmp_path, incidents_directory=directory) as rig:
        assert (await rig.ask("GET", "/report_incident")).status == 400
        reply = await rig.ask("POST", "/report_incident", b"details=it+broke+at+URI%3ACHK%3Asecret", form)
        assert reply.status == 200
        [file] = directory.iterdir()
        assert "secret" not in file.read_text()
        assert "it broke" in file.read_text()
        for number in range(100):
            (directory / f"other-{number}").touch()
        assert (await rig.ask("POST", "/report_incident", b"details=more", form)).status == 507


async def test_static_files_when_below_the_directory_then_are_served_and_no_others(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        static = tmp_path / "public_html"
        assert (await rig.ask("GET", "/static/page.html")).status == 404
        static.mkdir()
        (static / "page.html").write_text("<p>hello</p>")
        (tmp_path / "secret").write_text("secret")
        (static / "link").symlink_to(tmp_path / "secret")
        reply = await rig.ask("GET", "/static/page.html")
        assert (reply.body, reply.headers["content-type"]) == (b"<p>hello</p>", "text/html")
        for path in ("../secret", "%2e%2e/secret", "link", "..%2fsecret", "", ".", "page.html/"):
            assert (await rig.ask("GET", f"/static/{path}")).status == 404
        assert read_static(static, ("page.html\0",)) is None


async def _until(wire: Wire, text: bytes) -> None:
    while text not in wire.received:
        assert not wire.is_closed
        await wire.more()


async def test_events_when_followed_then_tell_of_running_operations_until_the_gateway_closes(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        wire = await rig.connect()
        with rig.gateway.history.upload(INDEX, 1000):
            wire.send(f"GET /status/events HTTP/1.1\r\nHost: {rig.host}\r\n\r\n".encode())
            await _until(wire, b'"outcome": "active"')
        await _until(wire, b'"outcome": "done"')
        assert b"text/event-stream" in wire.received
        rig.gateway.end_streams()
        await _until(wire, b"0\r\n\r\n")
        assert rig.gateway.streams.count == 0
        assert (await rig.ask("GET", "/status/events")).status == 503


def _frame(opcode: int, payload: bytes) -> bytes:
    """As a client sends it, masked with zeros."""
    return bytes([0x80 | opcode, 0x80 | len(payload)]) + bytes(4) + payload


async def _follow_log(rig: Rig) -> Wire:
    wire = await rig.connect()
    lines = (
        "GET /private/logs/v1 HTTP/1.1",
        f"Host: {rig.host}",
        f"Authorization: tahoe-lafs {TOKEN.decode()}",
        "Connection: keep-alive, Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {b64encode(bytes(16)).decode()}",
    )
    wire.send(("\r\n".join(lines) + "\r\n\r\n").encode())
    await _until(wire, b"\r\n\r\n")
    assert wire.received.startswith(b"HTTP/1.1 101 ")
    return wire


async def test_log_when_followed_then_tells_events_without_secrets_and_answers_pings(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        wire = await _follow_log(rig)
        assert b"Sec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=" in wire.received
        Logger("grid.test").info("somebody read {cap}", cap="URI:CHK:secret")
        await _until(wire, b"somebody read")
        assert b'"namespace": "grid.test"' in wire.received
        assert b"secret" not in wire.received
        wire.send(_frame(9, b"are you there"))
        Logger("grid.test").info("another")
        await _until(wire, b"are you there")
        wire.send(_frame(8, b"\x03\xe8"))
        while not wire.is_closed:
            await wire.more()


async def test_log_when_the_gateway_closes_or_the_client_rambles_then_ends(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        wires = [await _follow_log(rig), await _follow_log(rig)]
        wires[0].send(b"\xff" * 100)
        while not wires[0].is_closed:
            await wires[0].more()
        rig.gateway.end_streams()
        while not wires[1].is_closed:
            await wires[1].more()


async def test_log_when_asked_without_token_or_handshake_then_refuses(tmp_path: Path) -> None:
    token = {"Authorization": f"tahoe-lafs {TOKEN.decode()}"}
    async with running_gateway(tmp_path) as rig:
        assert (await rig.ask("GET", "/private/logs/v1")).status == 401
        assert (await rig.ask("GET", "/private/logs/v1", headers=token)).status == 400
        assert (await rig.ask("GET", "/private/other", headers=token)).status == 404


async def test_operation_when_its_client_goes_away_then_is_listed_as_stopped(tmp_path: Path) -> None:
    tasks = Tasks()

    async def hang(exchange: Exchange) -> AnyAnswer:
        with exchange.gateway.history.download(INDEX, 10):
            await exchange.gateway.store.runtime.clock.sleep(1000)
        return text_answer("")

    async with running_gateway(tmp_path, {"hang": hang}) as rig:
        wire = await rig.connect()
        stop = rig.gateway.history.watch(lambda operation: wire.transport.abortConnection())  # type: ignore[union-attr]
        wire.send(f"GET /hang HTTP/1.1\r\nHost: {rig.host}\r\n\r\n".encode())
        while not rig.gateway.history.recent:
            await rig.gateway.store.runtime.clock.sleep(0.01)
        stop()
        assert rig.gateway.history.recent[0].outcome == "cancelled"
    assert tasks.count == 0
