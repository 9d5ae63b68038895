"""Heads and bodies whose end two programs could disagree about, as bytes on a real socket."""

from __future__ import annotations

from pathlib import Path

import pytest
from twisted.internet import reactor
from twisted.internet.task import deferLater
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher

from grid.gateway.http.answers import Answer, AnyAnswer
from grid.gateway.http.body import Body
from grid.gateway.http.exchange import Exchange
from grid.gateway.shared.spool import Spool, SpoolFolder
from grid.limits import GATEWAY_DISCARDED, GATEWAY_HEADERS_SIZE
from grid.wire.connections.body_rate import BodyRate
from tests.gateway.rig import Reply, Rig, running_gateway
from tests.support.virtual_time import VirtualRuntime

_seen: list[bytes] = []


def nothing() -> None:
    """The socket stays as it is."""


def unused() -> Spool:
    """No spool: the body is read once."""
    raise AssertionError("a body that is read once was spooled")


async def _echo(exchange: Exchange) -> AnyAnswer:
    _seen.append(await exchange.body.read_all(2**20))
    return Answer(200, "text/plain", _seen[-1])


async def _send(rig: Rig, data: bytes) -> Reply:
    """The answer to a connection's bytes, behind which it has to be closed with nothing more said."""
    wire = await rig.connect()
    wire.send(data)
    reply = await wire.reply()
    assert reply.headers["connection"] == "close"
    assert int(reply.headers["content-length"]) == len(reply.body)
    assert reply.headers["x-content-type-options"] == "nosniff"
    wire.transport.loseConnection()  # type: ignore[union-attr]
    return reply


def _head(rig: Rig, *fields: str, version: str = "1.1") -> bytes:
    return "\r\n".join((f"PUT /echo HTTP/{version}", f"Host: {rig.host}", *fields, "", "")).encode("latin-1")


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (["Content-Length: 5", "Content-Length: 5"], 400),
        (["Content-Length: 5, 5"], 400),
        (["Content-Length: +5"], 400),
        (["Content-Length: 5_0"], 400),
        (["Content-Length: " + "9" * 5000], 413),
        (["Content-Length: 5", "Transfer-Encoding: chunked"], 400),
        (["Transfer-Encoding: chunked", "Content-Length: 5"], 400),
        (["Transfer-Encoding: identity"], 501),
        (["Transfer-Encoding: identity", "Content-Length: 5"], 501),
        (["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], 501),
        (["Transfer-Encoding: gzip, chunked"], 501),
        (["Transfer-Encoding: \x0bchunked"], 501),
        (["Transfer-Encoding : chunked"], 400),
        (["no colon"], 400),
        (["no colon", "Content-Length: 5"], 400),
        (["A: b"] * 300, 431),
        ([f"A{number}: {'b' * 9000}" for number in range(GATEWAY_HEADERS_SIZE // 9000 + 1)], 431),
        (["A: " + "b" * 60000], 431),
    ],
)
async def test_head_when_its_length_is_in_doubt_is_refused_and_nothing_of_it_runs(
    tmp_path: Path, fields: list[str], status: int
) -> None:
    _seen.clear()
    events: list[LogEvent] = []
    observer: ILogObserver = events.append  # type: ignore[assignment]
    globalLogPublisher.addObserver(observer)
    try:
        async with running_gateway(tmp_path, {"echo": _echo}) as rig:
            reply = await _send(rig, _head(rig, *fields) + b"hello" + _head(rig, "Content-Length: 5") + b"later")
            assert reply.status == status
            assert not _seen
    finally:
        globalLogPublisher.removeObserver(observer)
    assert not [event for event in events if event.get("log_failure") is not None]


async def test_head_when_of_http_1_0_and_chunked_is_refused(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, {"echo": _echo}) as rig:
        data = _head(rig, "Transfer-Encoding: chunked", version="1.0") + b"0\r\n\r\n"
        assert (await _send(rig, data)).status == 400


async def test_address_when_too_long_is_refused_and_the_answer_can_be_read(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        assert (await _send(rig, b"GET /" + b"a" * 500_000 + b" HTTP/1.1\r\n\r\n")).status == 414


async def test_chunk_when_it_has_no_length_is_refused(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, {"echo": _echo}) as rig:
        for chunk in (b"-1\r\nhello\r\n0\r\n\r\n", b"0x5\r\nhello\r\n0\r\n\r\n", b"5\r\nhelloXX0\r\n\r\n", b"\r\n"):
            assert (await _send(rig, _head(rig, "Transfer-Encoding: chunked") + chunk)).status == 400


BAD_CHUNKS = [b"f" * 17, b"f" * 16, b"5;a=\0", b"5;" + b"x" * 20000, b"0\r\n" + b"A: b\r\n" * 5000]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
async def test_chunk_when_its_size_is_impossible_is_refused_and_the_request_gets_no_second_answer(
    tmp_path: Path, method: str
) -> None:
    run: list[str] = []

    async def answering(exchange: Exchange) -> AnyAnswer:
        run.append(exchange.method)
        return Answer(200, "text/plain", b"done")

    async with running_gateway(tmp_path, {"echo": answering}) as rig:
        for chunk in BAD_CHUNKS:
            wire = await rig.connect()
            head = _head(rig, "Transfer-Encoding: chunked").replace(b"PUT", method.encode(), 1)
            wire.send(head + chunk + b"\r\nhello\r\n0\r\n\r\n" + _head(rig, "Content-Length: 0"))
            assert (await wire.reply()).status == 400
            for _ in range(20):
                await deferLater(reactor, 0)
            assert (bytes(wire.received), run) == (b"", [])


async def test_chunk_when_wrong_behind_a_whole_answer_leaves_the_answer_to_be_read(tmp_path: Path) -> None:
    async def answering(exchange: Exchange) -> AnyAnswer:
        return Answer(200, "text/plain", b"done")

    async with running_gateway(tmp_path, {"echo": answering}) as rig:
        wire = await rig.connect()
        wire.send(_head(rig, "Transfer-Encoding: chunked"))
        while not wire.received:
            await wire.more()
        wire.send(b"f" * 17 + b"\r\n")
        for _ in range(20):
            await deferLater(reactor, 0)
        assert (await wire.reply()).body == b"done"
        assert not wire.is_closed


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("PUT", 204), ("GET", 304)])
async def test_answer_without_a_body_does_not_wait_for_the_rest_of_the_request(
    tmp_path: Path, method: str, status: int
) -> None:
    async def answering(exchange: Exchange) -> AnyAnswer:
        return Answer(status, "text/plain", b"")

    async with running_gateway(tmp_path, {"echo": answering}) as rig:
        wire = await rig.connect()
        wire.send(_head(rig, "Content-Length: 1000").replace(b"PUT", method.encode(), 1) + b"hello")
        assert (await wire.reply(head=True)).status == status


async def test_body_in_the_smallest_chunks_is_kept_in_few_pieces() -> None:
    clock = VirtualRuntime().clock
    folder = SpoolFolder(Path("/nowhere"))
    rate = BodyRate(clock, 1)
    body = Body(None, "", pause=nothing, resume=nothing, make_spool=unused, memory=folder, rate=rate)
    for _ in range(100_000):
        body.arrive(b"xy")
    body.end()
    assert len(body._pieces) <= 200_000 // 4096 + 1
    assert await body.read_all(2**20) == b"xy" * 100_000


async def test_client_when_refused_and_still_sending_is_cut_off(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        wire = await rig.connect()
        wire.send(b"nonsense\r\n\r\n" + b"x" * (GATEWAY_DISCARDED + 2**20))
        while not wire.is_closed:
            await wire.more()


async def test_upload_when_it_arrives_slowly_then_its_progress_is_shown_under_its_label(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        wire = await rig.connect()
        head = f"PUT /uri?progress=mine HTTP/1.1\r\nHost: {rig.host}\r\nContent-Length: 3000\r\n\r\n"
        wire.send(head.encode() + bytes(1000))
        while not (rig.gateway.history.active and rig.gateway.history.active[0].progress.received == 1000):
            await deferLater(reactor, 0)
        [operation] = rig.gateway.history.active
        assert (operation.subject.label, operation.size, operation.to_json()["received"]) == ("mine", 3000, 1000)
        shown = (await rig.ask("GET", "/status")).body.decode()
        assert "Receiving: 1000 B of 3.00 kB" in shown or "Receiving: 1.00 kB of 3.00 kB" in shown
        assert 'value="0.1667"' in shown
        wire.send(bytes(2000))
        assert (await wire.reply()).status == 200
        [done] = rig.gateway.history.recent
        assert (done.progress.received, done.progress.fraction) == (3000, 1.0)
