"""What the server refuses before a handler sees it: foreign hosts and origins, slow or oversized heads and bodies, idle connections."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from twisted.internet.task import deferLater
from twisted.logger import ILogObserver, globalLogPublisher

from grid.gateway.http.answers import Answer, AnyAnswer
from grid.gateway.http.exchange import Exchange
from tests.gateway.rig import running_gateway


async def _sleep(seconds: float) -> None:
    from twisted.internet import reactor

    await deferLater(reactor, seconds)


async def _echo(exchange: Exchange) -> AnyAnswer:
    return Answer(200, "text/plain", await exchange.body.read_all(2**26))


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "a b"}, 400),
        ({"Host": ""}, 400),
        ({"Host": "127.0.0.1:80;x"}, 400),
        ({"Host": "127.0.0.1:1evil"}, 400),
        ({"Host": "127.0.0.1:80:80"}, 400),
        ({"Host": "127.0.0.1'x"}, 400),
        ({"Host": "[::1]x"}, 400),
        ({"Host": "127.0.0.1"}, 200),
        ({"Host": "127.0.0.1:"}, 200),
        ({"Host": "LOCALHOST:1"}, 200),
        ({"Host": "[::1]:99"}, 200),
    ],
)
async def test_host_when_it_is_not_ours_is_refused(tmp_path: Path, fields: dict[str, str], status: int) -> None:
    async with running_gateway(tmp_path, {"echo": _echo}) as rig:
        assert (await rig.ask("GET", "/echo", b"", fields)).status == status


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://127.0.0.1/echo", "127.0.0.1", 200),
        ("HTTP://LocalHost:1/echo?a=b", "evil.example", 200),
        ("https://[::1]:99/echo", "127.0.0.1", 200),
        ("http://127.0.0.1", "127.0.0.1", 200),
        ("http://127.0.0.1?t=json", "127.0.0.1", 200),
        ("http://evil.example/echo", "127.0.0.1", 421),
        ("http://127.0.0.1.evil.example/echo", "127.0.0.1", 421),
        ("http://127.0.0.1@evil.example/echo", "127.0.0.1", 400),
        ("http://user@127.0.0.1/echo", "127.0.0.1", 400),
        ("http:///echo", "127.0.0.1", 400),
        ("http://127.0.0.1/echo", "a b", 400),
        ("http:/127.0.0.1/echo", "127.0.0.1", 400),
        ("ftp://127.0.0.1/echo", "127.0.0.1", 400),
        ("127.0.0.1/echo", "127.0.0.1", 400),
    ],
)
async def test_request_line_that_names_a_host_is_taken_where_the_host_is_ours(
    tmp_path: Path, target: str, host: str, status: int
) -> None:
    async with running_gateway(tmp_path, {"echo": _echo}) as rig:
        assert (await rig.ask("GET", target, b"", {"Host": host})).status == status


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
async def test_change_when_a_strangers_page_asks_for_it_is_refused(
    tmp_path: Path, fields: dict[str, str], status: int
) -> None:
    async with running_gateway(tmp_path, {"echo": _echo}) as rig:
        assert (await rig.ask("POST", "/echo", b"x", fields)).status == status
        own = {"Origin": f"http://{rig.host}"}
        assert (await rig.ask("POST", "/echo", b"x", own)).status == 200


async def test_headers_when_they_dribble_in_end_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.gateway.http.server.GATEWAY_HEADER_S", 0.2)
    async with running_gateway(tmp_path) as rig:
        wire = await rig.connect()
        for byte in b"GET /healthz HTTP/1.1\r\nHost: x\r\n" * 20:
            if wire.is_closed:
                break
            wire.send(bytes([byte]))
            await _sleep(0.01)
        assert wire.is_closed


async def test_body_when_it_dribbles_in_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.gateway.http.body.GATEWAY_BODY_PERIOD_S", 0.1)
    async with running_gateway(tmp_path, {"echo": _echo}) as rig:
        wire = await rig.connect()
        wire.send(f"PUT /echo HTTP/1.1\r\nHost: {rig.host}\r\nContent-Length: 100\r\n\r\nx".encode())
        assert (await wire.reply()).status == 408


@pytest.mark.parametrize("ending", ["timeoutConnection", "forceAbortClient"])
async def test_connection_when_it_is_idle_too_long_is_closed_and_the_log_has_no_address(
    tmp_path: Path, ending: str
) -> None:
    seen: list[str] = []

    def note(event: dict[str, object]) -> None:
        seen.append(repr(event))

    observer = cast(ILogObserver, note)  # Any function of one event is one, which only zope.interface sees.
    globalLogPublisher.addObserver(observer)
    try:
        async with running_gateway(tmp_path) as rig:
            wire = await rig.connect()
            wire.send(f"GET /healthz HTTP/1.1\r\nHost: {rig.host}\r\n\r\n".encode())
            assert (await wire.reply()).status == 200
            [channel] = rig.factory.connections
            getattr(channel, ending)()
            while not wire.is_closed:
                await wire.more()
    finally:
        globalLogPublisher.removeObserver(observer)
    assert seen  # Of the request.
    assert not [line for line in seen if "iming out" in line or "IPv4Address" in line]
