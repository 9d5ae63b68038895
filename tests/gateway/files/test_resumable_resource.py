"""Uploads that continue after their connection was lost. [spec webapi 4.9]"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from grid.gateway.shared import resumable_uploads
from tests.gateway.trees import gateway_of_trees
from tests.support.web_gateway import Reply, WebGateway

DATA = random.Random(9).randbytes(2_500_000)
TYPE = {"Content-Type": "application/offset+octet-stream"}
TUS = {"Tus-Resumable": "1.0.0"}


@asynccontextmanager
async def gateway(folder: Path) -> AsyncIterator[WebGateway]:
    """A gateway; its uploads end with it."""
    async with gateway_of_trees(folder) as web:
        try:
            yield web
        finally:
            web.gateway.uploads.close()


async def tus(web: WebGateway, method: str, path: str, body: bytes = b"", **headers: str) -> Reply:
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    reply = await web.request(method, path, body, {**TUS, **more})
    assert reply.headers["tus-resumable"] == "1.0.0"
    return reply


async def begin(web: WebGateway, size: int) -> str:
    reply = await tus(web, "POST", "/uploads", Upload_Length=str(size))
    assert reply.status == 201 and "upload-expires" in reply.headers
    origin, _, identifier = reply.headers["location"].partition("/uploads/")
    assert origin == f"http://127.0.0.1:{web.port}" and len(identifier) == 26
    return f"/uploads/{identifier}"


async def send(web: WebGateway, path: str, offset: int, body: bytes) -> Reply:
    return await tus(web, "PATCH", path, body, Upload_Offset=str(offset), **TYPE)


async def offset_of(web: WebGateway, path: str) -> int:
    reply = await tus(web, "HEAD", path)
    assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")
    return int(reply.headers["upload-offset"])


async def link(web: WebGateway, path: str, target: str) -> Reply:
    return await web.put(f"{target}?upload={path.rpartition('/')[2]}")


@pytest.mark.parametrize("size", [0, 1, 100, len(DATA)])
async def test_file_sent_in_several_requests_is_linked_and_read_back(tmp_path: Path, size: int) -> None:
    async with gateway(tmp_path) as web:
        root = (await web.put("/uri?t=mkdir")).text
        path = await begin(web, size)
        for start in range(0, size, 1_000_000):
            piece = DATA[:size][start : start + 1_000_000]
            assert await offset_of(web, path) == start
            reply = await send(web, path, start, piece)
            assert (reply.status, reply.headers["upload-offset"]) == (204, str(start + len(piece)))
        linked = await link(web, path, f"/uri/{root}/sub/a.bin")
        assert linked.status == 201, linked.text
        assert (await web.get(f"/uri/{root}/sub/a.bin")).body == DATA[:size]
        assert (await tus(web, "HEAD", path)).status == 404
        assert (await link(web, path, f"/uri/{root}/b.bin")).status == 404


async def test_bytes_that_arrived_before_the_connection_broke_are_kept(tmp_path: Path) -> None:
    async with gateway(tmp_path) as web:
        root = (await web.put("/uri?t=mkdir")).text
        path = await begin(web, len(DATA))
        connection = await web.connect()
        head = web.head("PATCH", path, len(DATA), {**TUS, **TYPE, "Upload-Offset": "0"})
        connection.send(head + DATA[:1_500_000])
        identifier = path.rpartition("/")[2]
        with web.gateway.uploads.using(identifier) as upload:
            while upload.spool.size < 1_000_000:
                await web.get("/healthz")
        connection.transport.abortConnection()
        arrived = await offset_of(web, path)
        assert 1_000_000 <= arrived <= 1_500_000
        assert (await send(web, path, arrived, DATA[arrived:])).status == 204
        assert (await link(web, path, f"/uri/{root}/a")).status == 201
        assert (await web.get(f"/uri/{root}/a")).body == DATA


async def test_new_request_takes_over_from_one_whose_connection_is_silent(tmp_path: Path) -> None:
    async with gateway(tmp_path) as web:
        path = await begin(web, len(DATA))
        connection = await web.connect()
        connection.send(web.head("PATCH", path, len(DATA), {**TUS, **TYPE, "Upload-Offset": "0"}) + DATA[:300_000])
        arrived = await offset_of(web, path)
        await connection.at_least(1)
        assert connection.received.startswith(b"HTTP/1.1 409 ")
        connection.transport.abortConnection()
        assert (await send(web, path, arrived, DATA[arrived:])).status == 204
        assert await offset_of(web, path) == len(DATA)


async def test_upload_replaces_a_mutable_file_and_obeys_replace(tmp_path: Path) -> None:
    async with gateway(tmp_path) as web:
        root = (await web.put("/uri?t=mkdir")).text
        await web.put(f"/uri/{root}/m?format=sdmf", b"first")
        path = await begin(web, 100)
        assert (await link(web, path, f"/uri/{root}/m")).status == 409  # Bytes are missing.
        await send(web, path, 0, DATA[:100])
        refused = await web.put(f"/uri/{root}/m?replace=false&upload={path.rpartition('/')[2]}")
        assert refused.status == 409
        assert (await link(web, path, f"/uri/{root}/m")).status == 200
        assert (await web.get(f"/uri/{root}/m")).body == DATA[:100]


async def test_requests_that_cannot_be_are_refused(tmp_path: Path) -> None:
    async with gateway(tmp_path) as web:
        path = await begin(web, 10)
        for method, target, headers, body, status in [
            ("POST", "/uploads", {"Upload-Length": "5", "Tus-Resumable": "0.2.2"}, b"", 412),
            ("POST", "/uploads", {"Upload-Length": "x"}, b"", 400),
            ("POST", "/uploads", {}, b"", 400),
            ("POST", "/uploads", {"Upload-Length": str(2**60)}, b"", 400),
            ("PATCH", path, {"Upload-Offset": "0"}, b"x", 415),
            ("PATCH", path, {**TYPE}, b"x", 400),
            ("PATCH", path, {**TYPE, "Upload-Offset": "3"}, b"x", 409),
            ("PATCH", path, {**TYPE, "Upload-Offset": "0"}, b"x" * 11, 413),
            ("PATCH", "/uploads/nobody", {**TYPE, "Upload-Offset": "0"}, b"x", 404),
            ("PATCH", f"{path}/x", {**TYPE, "Upload-Offset": "0"}, b"x", 404),
            ("DELETE", "/uploads/nobody", {}, b"", 404),
            ("GET", path, {}, b"", 405),
            ("PATCH", "/uri/x", {}, b"", 501),
        ]:
            reply = await web.request(method, target, body, {**TUS, **headers})
            assert reply.status == status, (method, target, reply.status, reply.text)
        assert await offset_of(web, path) == 0
        options = await web.request("OPTIONS", "/uploads")
        assert (options.status, options.headers["tus-version"]) == (204, "1.0.0")
        assert options.headers["tus-extension"] == "creation,expiration,termination"


async def test_upload_is_sent_and_discarded_by_browsers_that_only_post(tmp_path: Path) -> None:
    async with gateway(tmp_path) as web:
        path = await begin(web, 3)
        override = "X-HTTP-Method-Override"
        sent = await web.request("POST", path, b"abc", {**TUS, **TYPE, "Upload-Offset": "0", override: "PATCH"})
        assert (sent.status, sent.headers["upload-offset"]) == (204, "3")
        assert (await web.request("POST", path, b"", {**TUS, override: "DELETE"})).status == 204
        assert (await tus(web, "HEAD", path)).status == 404


async def test_uploads_are_bounded_and_are_gone_when_discarded_or_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumable_uploads, "MAX_UPLOADS", 2)
    async with gateway(tmp_path) as web:
        paths = [await begin(web, 10) for _ in range(2)]
        assert (await tus(web, "POST", "/uploads", Upload_Length="1")).status == 503
        assert (await tus(web, "DELETE", paths[0])).status == 204
        await begin(web, 2_000_000)
        web.gateway.uploads.close()
        assert len(web.gateway.uploads) == 0
        assert (await tus(web, "HEAD", paths[1])).status == 404
