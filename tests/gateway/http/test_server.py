"""Requests over real sockets: bodies that stream in, answers that stream out, and attacks."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater
from twisted.logger import ILogObserver, globalLogPublisher
from twisted.web.http import HTTPChannel

from grid.errors import GridError, NotHappyError
from grid.gateway.http.answers import Answer, AnyAnswer, StreamedAnswer, modern_json
from grid.gateway.http.body import MAX_WAITING
from grid.gateway.http.exchange import Exchange
from grid.ports import Sink
from tests.gateway.rig import TOKEN, running_gateway

CAP = "URI:CHK:aaaaaaaaaaaaaaaaaaaaaaaaaa:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb:3:10:1000"


def _reactor() -> object:
    from twisted.internet import reactor

    return reactor


async def _sleep(seconds: float) -> None:
    await deferLater(_reactor(), seconds)  # type: ignore[arg-type]


async def _echo(exchange: Exchange) -> AnyAnswer:
    return Answer(200, "text/plain", await exchange.body.read_all(2**26))


async def _describe(exchange: Exchange) -> AnyAnswer:
    form = await exchange.form()
    file = None if form.file is None else bytes(await form.file.read_at(0, form.file.size))
    return modern_json(
        {
            "segments": exchange.segments,
            "arguments": {name: exchange.arguments.text(name) for name in ("a", "t", "name")},
            "file": None if file is None else [form.file_name, file.decode()],
        }
    )


async def test_health_when_asked_is_ok_and_readiness_depends_on_servers(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        assert (await rig.ask("GET", "/healthz")).body == b'{"status": "ok"}'
        ready = await rig.ask("GET", "/readyz")
        assert ready.status == 503
        assert b'"needed": 7' in ready.body


async def test_answer_has_the_headers_that_every_answer_has(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        for path in ("/healthz", "/nothing"):
            reply = await rig.ask("GET", path)
            assert reply.headers["x-frame-options"] == "DENY"
            assert reply.headers["referrer-policy"] == "no-referrer"
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert reply.headers["server"].startswith("Grid/")
            assert reply.headers["cache-control"] == "no-store"
            assert "date" in reply.headers


async def test_answer_when_it_has_a_tag_may_be_cached_by_its_client_only(tmp_path: Path) -> None:
    async def tagged(_: Exchange) -> AnyAnswer:
        return Answer(200, "text/plain", b"x", (("ETag", '"t"'),))

    async with running_gateway(tmp_path, {"tagged": tagged}) as rig:
        assert (await rig.ask("GET", "/tagged")).headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize("size", [0, 1, 65536, 3 * MAX_WAITING])
async def test_body_when_sent_reaches_the_handler_whole(tmp_path: Path, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    async with running_gateway(tmp_path, {"echo": _echo}) as rig:
        reply = await rig.ask("PUT", "/echo", data)
        assert (reply.status, reply.body) == (200, data)


async def test_body_when_chunked_reaches_the_handler_whole(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, {"echo": _echo}) as rig:
        wire = await rig.connect()
        head = f"PUT /echo HTTP/1.1\r\nHost: {rig.host}\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
        wire.send(head.encode())
        for piece in (b"5\r\nhello\r\n", b"6\r\n world\r\n", b"0\r\n\r\n"):
            wire.send(piece)
            await _sleep(0.01)
        assert (await wire.reply()).body == b"hello world"


async def test_body_when_nobody_takes_it_stops_the_reading_of_the_socket(tmp_path: Path) -> None:
    taken: list[int] = []
    go_on: Deferred[None] = Deferred()

    async def slow(exchange: Exchange) -> AnyAnswer:
        await go_on
        taken.extend([len(chunk) async for chunk in exchange.body.chunks()])
        return Answer(200, "text/plain", b"%d" % sum(taken))

    size = 64 * 2**20
    async with running_gateway(tmp_path, {"slow": slow}) as rig:
        wire = await rig.connect()
        wire.send(f"PUT /slow HTTP/1.1\r\nHost: {rig.host}\r\nContent-Length: {size}\r\n\r\n".encode())
        wire.send(bytes(size))
        for _ in range(20):
            await _sleep(0.02)
        (request,) = rig.factory.requests
        assert request.body is not None
        assert request.body.received < 4 * MAX_WAITING
        go_on.callback(None)
        assert (await wire.reply()).body == b"%d" % size
        assert max(taken) <= 2 * MAX_WAITING


async def test_form_when_multipart_gives_fields_and_the_file(tmp_path: Path) -> None:
    body = (
        b'--xyz\r\nContent-Disposition: form-data; name="t"\r\n\r\nupload\r\n'
        b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="a b.txt"\r\n\r\ncontents\r\n--xyz--\r\n'
    )
    async with running_gateway(tmp_path, {"form": _describe}) as rig:
        reply = await rig.ask("POST", "/form/x%2Fy?a=1", body, {"Content-Type": "multipart/form-data; boundary=xyz"})
        assert reply.body == (
            b'{"segments": ["form", "x/y"], "arguments": {"a": "1", "t": "upload", "name": null}, '
            b'"file": ["a b.txt", "contents"]}'
        )
        fields = {"Content-Type": "application/x-www-form-urlencoded"}
        reply = await rig.ask("POST", "/form?a=1", b"a=2&name=x+y%C3%BC", fields)
        assert b'"a": "1"' in reply.body
        assert b'"name": "x y\\u00fc"' in reply.body


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"--x\r\nno", "multipart/form-data; boundary=x"),
        (b"", "multipart/form-data"),
        (b"a=%ff", "application/x-www-form-urlencoded"),
        (b"&".join([b"a=1"] * 1002), "application/x-www-form-urlencoded"),
    ],
)
async def test_form_when_it_cannot_be_read_is_refused(tmp_path: Path, body: bytes, kind: str) -> None:
    async with running_gateway(tmp_path, {"form": _describe}) as rig:
        assert (await rig.ask("POST", "/form", body, {"Content-Type": kind})).status == 400


async def test_head_when_the_page_is_not_rendered_gives_no_length(tmp_path: Path) -> None:
    async def page(exchange: Exchange) -> AnyAnswer:
        return Answer(200, "text/html", b"" if exchange.method == "HEAD" else b"page")

    async with running_gateway(tmp_path, {"page": page}) as rig:
        assert "content-length" not in (await rig.ask("HEAD", "/page")).headers
        assert (await rig.ask("GET", "/page")).headers["content-length"] == "4"


async def test_header_when_it_is_not_utf8_is_read_as_bytes(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, {"echo": _echo}) as rig:
        wire = await rig.connect()
        fields = (
            f"Host: {rig.host}\r\nContent-Length: 1\r\nContent-Type: \x93\r\nAccept: \xff\r\nConnection: close\r\n\r\n"
        )
        wire.send(b"PUT /echo HTTP/1.1\r\n" + fields.encode("latin-1") + b"x")
        assert (await wire.reply()).status == 200


async def test_path_when_it_is_not_utf8_is_refused(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, {"form": _describe}) as rig:
        assert (await rig.ask("GET", "/form/%ff")).status == 400
        assert (await rig.ask("OPTIONS", "/form")).status == 501


async def test_answer_when_streamed_comes_whole_and_waits_for_a_slow_reader(tmp_path: Path) -> None:
    written: list[int] = []

    async def write(sink: Sink) -> None:
        for _ in range(64):
            await sink.write(bytes(2**20))
            written.append(2**20)

    async def stream(exchange: Exchange) -> AnyAnswer:
        return StreamedAnswer(200, "text/plain", 64 * 2**20, (), write)

    async with running_gateway(tmp_path, {"stream": stream}) as rig:
        wire = await rig.connect()
        wire.transport.pauseProducing()  # type: ignore[union-attr]
        wire.send(f"GET /stream HTTP/1.1\r\nHost: {rig.host}\r\n\r\n".encode())
        for _ in range(20):
            await _sleep(0.02)
        assert sum(written) < 32 * 2**20
        wire.transport.resumeProducing()  # type: ignore[union-attr]
        reply = await wire.reply()
        assert len(reply.body) == 64 * 2**20
        assert reply.is_whole


async def test_answer_when_it_fails_before_its_first_byte_is_the_error(tmp_path: Path) -> None:
    async def write(sink: Sink) -> None:
        raise NotHappyError("too few servers")

    async def stream(exchange: Exchange) -> AnyAnswer:
        return StreamedAnswer(200, "text/plain", 1000, (), write)

    async with running_gateway(tmp_path, {"stream": stream}) as rig:
        reply = await rig.ask("GET", "/stream")
        assert reply.status == 503
        assert reply.body == b"UploadUnhappinessError: too few servers\n"


async def test_answer_when_it_fails_later_is_cut_short_and_nothing_is_added(tmp_path: Path) -> None:
    async def write(sink: Sink) -> None:
        await sink.write(b"first")
        raise GridError("the rest is lost")

    async def sized(exchange: Exchange) -> AnyAnswer:
        return StreamedAnswer(200, "text/plain", 1000, (), write)

    async def chunked(exchange: Exchange) -> AnyAnswer:
        return StreamedAnswer(200, "text/plain", None, (), write)

    async with running_gateway(tmp_path, {"sized": sized, "chunked": chunked}) as rig:
        for path in ("/sized", "/chunked"):
            try:
                reply = await rig.ask("GET", path)
            except ConnectionError:
                continue
            assert not reply.is_whole
            assert reply.body in (b"", b"first")


async def test_handler_when_the_client_goes_away_is_cancelled(tmp_path: Path) -> None:
    ended: list[str] = []

    async def forever(exchange: Exchange) -> AnyAnswer:
        try:
            await Deferred()
        except CancelledError:
            ended.append("cancelled")
            raise
        raise AssertionError

    async with running_gateway(tmp_path, {"forever": forever}) as rig:
        wire = await rig.connect()
        wire.send(f"GET /forever HTTP/1.1\r\nHost: {rig.host}\r\n\r\n".encode())
        await _sleep(0.05)
        wire.transport.abortConnection()  # type: ignore[union-attr]
        while not ended:
            await _sleep(0.01)
        assert not rig.factory.requests


async def test_upload_when_the_client_stops_half_way_is_given_up(tmp_path: Path) -> None:
    ended: list[BaseException] = []

    async def take(exchange: Exchange) -> AnyAnswer:
        try:
            await exchange.body.read_all(2**20)
        except BaseException as error:
            ended.append(error)
            raise
        raise AssertionError

    async with running_gateway(tmp_path, {"take": take}) as rig:
        wire = await rig.connect()
        wire.send(f"PUT /take HTTP/1.1\r\nHost: {rig.host}\r\nContent-Length: 100\r\n\r\nhalf".encode())
        await _sleep(0.05)
        wire.transport.loseConnection()  # type: ignore[union-attr]
        while not ended:
            await _sleep(0.01)


async def test_refusal_before_the_body_came_reaches_the_client(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        reply = await rig.ask("PUT", "/nothing", bytes(2**20))
        assert reply.status == 404
        assert reply.headers["connection"] == "close"


async def test_internal_error_reaches_the_log_and_no_client(tmp_path: Path) -> None:
    async def mistaken(exchange: Exchange) -> AnyAnswer:
        raise ZeroDivisionError(CAP)

    seen: list[dict[str, object]] = []
    observer = cast(ILogObserver, seen.append)  # Any function of one event is one, which only zope.interface sees.
    globalLogPublisher.addObserver(observer)
    try:
        async with running_gateway(tmp_path, {"mistaken": mistaken}) as rig:
            reply = await rig.ask("GET", "/mistaken")
    finally:
        globalLogPublisher.removeObserver(observer)
    assert reply.status == 500
    assert CAP.encode() not in reply.body
    assert b"Traceback" not in reply.body
    assert any("log_failure" in event for event in seen)


async def test_log_of_requests_has_no_capability_in_it(tmp_path: Path) -> None:
    seen: list[str] = []

    def note(event: dict[str, object]) -> None:
        seen.append(
            f"{event.get('log_format')} {[value for name, value in event.items() if not name.startswith('log_')]}"
        )

    observer = cast(ILogObserver, note)  # Any function of one event is one, which only zope.interface sees.
    globalLogPublisher.addObserver(observer)
    try:
        async with running_gateway(tmp_path, {"echo": _echo}) as rig:
            for path in (
                f"/uri/{CAP}?t=json",
                f"/cap/{CAP}",
                f"/file/{CAP}/@@named=/{CAP}",
                f"/uri?uri={CAP}&t={CAP}",
                f"/{CAP}",
            ):
                await rig.ask("GET", path)
                await rig.ask("POST", f"/echo?when_done={CAP}&to_dir={CAP}", b"x")
    finally:
        globalLogPublisher.removeObserver(observer)
    assert len([line for line in seen if "{method} {path}" in line]) == 10
    # Longer than any address of an object, in which a few of the letters may well follow each other.
    assert not [line for line in seen if "a" * 9 in line or "b" * 9 in line]


async def test_requests_when_they_share_a_connection_are_answered_in_order(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, {"echo": _echo}) as rig:
        wire = await rig.connect()
        for text in (b"one", b"two", b"three"):
            wire.send(f"PUT /echo HTTP/1.1\r\nHost: {rig.host}\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
        assert [(await wire.reply()).body for _ in range(3)] == [b"one", b"two", b"three"]


async def test_requests_beyond_the_limit_are_put_off(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, {"echo": _echo}, max_concurrent=1) as rig:
        first = await rig.connect()
        first.send(f"PUT /echo HTTP/1.1\r\nHost: {rig.host}\r\nContent-Length: 9\r\n\r\n".encode())
        await _sleep(0.05)
        assert (await rig.ask("GET", "/healthz")).status == 503
        first.send(b"123456789")
        assert (await first.reply()).body == b"123456789"
        assert (await rig.ask("GET", "/healthz")).status == 200


async def test_gateway_when_it_ends_lets_what_runs_end_first(tmp_path: Path) -> None:
    go_on: Deferred[None] = Deferred()

    async def slow(exchange: Exchange) -> AnyAnswer:
        await go_on
        return Answer(200, "text/plain", b"done")

    async with running_gateway(tmp_path, {"slow": slow}) as rig:
        wire = await rig.connect()
        wire.send(f"GET /slow HTTP/1.1\r\nHost: {rig.host}\r\n\r\n".encode())
        await _sleep(0.05)
        draining = Deferred.fromCoroutine(rig.factory.drain(10))
        assert not draining.called
        go_on.callback(None)
        reply = await wire.reply()
        await draining
        assert (reply.body, reply.headers["connection"]) == (b"done", "close")


async def test_token_when_wrong_or_missing_is_refused(tmp_path: Path) -> None:
    async def private(exchange: Exchange) -> AnyAnswer:
        exchange.gateway.require_token(exchange.headers.get("authorization"))
        return Answer(200, "text/plain", b"secret")

    async with running_gateway(tmp_path, {"guarded": private}) as rig:
        for value in (None, "tahoe-lafs", "tahoe-lafs wrong", f"basic {TOKEN.decode()}"):
            reply = await rig.ask("GET", "/guarded", b"", {} if value is None else {"Authorization": value})
            assert reply.status == 401
            assert reply.headers["www-authenticate"] == 'tahoe-lafs realm="tahoe-lafs"'
        reply = await rig.ask("GET", "/guarded", b"", {"Authorization": f"tahoe-lafs {TOKEN.decode()}"})
        assert reply.body == b"secret"


def test_channel_when_twisted_changes_has_the_parts_we_use() -> None:
    for name in (
        "allHeadersReceived",
        "requestDone",
        "timeoutConnection",
        "forceAbortClient",
        "_respondToBadRequestAndDisconnect",
    ):
        assert callable(getattr(HTTPChannel, name))
    channel = HTTPChannel()
    assert channel._dataBuffer == []
    assert (channel._abortingCall, channel.abortTimeout) == (None, 15)
    assert (channel._receivedHeaderSize, channel._receivedHeaderCount) == (0, 0)
