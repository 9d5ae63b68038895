"""GET and HEAD of files: bytes, headers, ranges, tags, and errors."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from twisted.internet import reactor

from grid.caps import ChkCap, KnownCap, LitCap, StorageIndex
from grid.codec.base32 import encode
from grid.directory.pack import Child
from grid.gateway.files.downloads import WHOLE_SIZE
from grid.mutable.sources import MemorySource
from grid.ports import Buffer, Range, ShareNumber
from grid.runtime import ReactorClock
from grid.storage.calls.service import StorageService
from tests.gateway.one_level import folder_of, gateway_of_files
from tests.support.scripted_server import ScriptedServer
from tests.support.web_gateway import WebGateway

DATA = random.Random(7).randbytes(5000)
LONG = random.Random(8).randbytes(3 * WHOLE_SIZE + 17)


async def every_kind(web: WebGateway, data: bytes) -> list[KnownCap]:
    """The same contents in every way."""
    store = web.gateway.store
    return [
        await store.put_immutable(MemorySource(data)),
        await store.put_mutable(data),
        await store.put_mutable(MemorySource(data), format="mdmf"),
    ]


@pytest.mark.parametrize("data", [b"", b"small", DATA, LONG], ids=["empty", "literal", "short", "long"])
async def test_file_when_asked_for_then_comes_whole_and_in_part_by_every_cap(tmp_path: Path, data: bytes) -> None:
    size = len(data)
    async with gateway_of_files(tmp_path) as web:
        for cap in await every_kind(web, data):
            for text in {cap.to_string(), cap.read_cap().to_string()}:
                reply = await web.get(f"/uri/{text}")
                assert (reply.status, reply.body) == (200, data)
                assert reply.headers["content-length"] == str(size)
                assert reply.headers["accept-ranges"] == "bytes"
                assert reply.headers["content-type"] == "text/plain"
                head = await web.request("HEAD", f"/uri/{text}")
                assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(size))
                assert "etag" not in head.headers
                if not size:
                    continue
                for start, stop in [(0, 1), (size - 3, size), (1, size), (size // 2, size // 2 + 1)]:
                    reply = await web.get(f"/uri/{text}", Range=f"bytes={start}-{stop - 1}")
                    assert (reply.status, reply.body) == (206, data[start:stop])
                    assert reply.headers["content-range"] == f"bytes {start}-{stop - 1}/{size}"
                    assert reply.headers["content-length"] == str(stop - start)
                head = await web.request("HEAD", f"/uri/{text}", headers={"Range": "bytes=1-2"})
                assert (head.status, head.headers["content-length"]) == (206, "2")


async def test_range_when_invalid_or_past_the_end_then_is_answered_as_such(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        for cap in await every_kind(web, DATA):
            target = f"/uri/{cap.to_string()}"
            for header in ("bytes=9-3", "items=0-1", "bytes=-0", "x"):
                assert (await web.get(target, Range=header)).status == 200
            for header in ("bytes=5000-", "bytes=5000-6000"):
                reply = await web.get(target, Range=header)
                assert (reply.status, reply.headers["content-range"]) == (416, "bytes */5000")
            assert (await web.get(target, Range="bytes=-9999")).status == 206
            assert (await web.get(target, Range="bytes=0-1,4-5")).body == DATA[:2]


async def test_tag_when_the_client_has_it_then_nothing_is_sent(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        chk, sdmf, _ = await every_kind(web, DATA)
        assert isinstance(chk, ChkCap)
        tag = f"{encode(chk.storage_index)}-"
        for query, wanted in [("", tag), ("?t=uri", f"{tag}uri"), ("?t=json", f"{tag}json")]:
            target = f"/uri/{chk.to_string()}{query}"
            assert (await web.get(target)).headers["etag"] == wanted
            for header in (wanted, f'"{wanted}"', f"x, {wanted}", "*"):
                reply = await web.get(target, If_None_Match=header, Range="bytes=0-1")
                assert (reply.status, reply.headers["etag"], reply.body) == (304, wanted, b"")
                assert "content-type" not in reply.headers
            assert (await web.get(target, If_None_Match="other")).status == 200
        reply = await web.get(f"/uri/{sdmf.to_string()}", If_None_Match="*")
        assert reply.status == 200 and "etag" not in reply.headers
        folder = await folder_of(web, child=Child(target=chk))
        assert "etag" not in (await web.get(f"{folder}/child?t=json")).headers
        assert (await web.get(f"{folder}/child")).headers["etag"] == tag


async def test_name_when_given_then_decides_the_headers(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        target = f"/uri/{LitCap(data=b'small').to_string()}"
        reply = await web.get(f"{target}?filename=x.html")
        assert reply.headers["content-type"] == "text/html"
        assert reply.headers["content-security-policy"] == "sandbox"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "content-disposition" not in reply.headers
        assert (await web.get(f"{target}?filename=x.tar.gz")).headers["content-encoding"] == "gzip"
        reply = await web.get(f"{target}?filename=%C3%BC%22%0D%0Ax&save=true")
        assert reply.headers["content-disposition"].startswith('attachment; filename="')
        assert set(reply.headers) == set((await web.get(f"{target}?save=true")).headers)
        assert (await web.get(f"{target}?save=true")).headers["content-disposition"] == 'attachment; filename="unknown"'
        assert (await web.get(f"{target}?save=maybe")).status == 400
        folder = await folder_of(web, **{"page.html": Child(target=LitCap(data=b"x"))})
        assert (await web.get(f"{folder}/page.html")).headers["content-type"] == "text/html"


async def test_view_when_asked_for_then_is_answered(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        for cap in [*await every_kind(web, DATA), LitCap(data=b"x")]:
            target = f"/uri/{cap.to_string()}"
            assert (await web.get(f"{target}?t=uri")).text == cap.to_string()
            reply = await web.get(f"{target}?t=readonly-uri")
            assert (reply.text, reply.headers["content-type"]) == (cap.read_cap().to_string(), "text/plain")
            kind, about = json.loads((await web.get(f"{target}?t=%20json%20")).text)
            assert (kind, about["size"], about["mutable"]) == (
                "filenode",
                len(DATA) if cap.storage_index else 1,
                cap.is_mutable,
            )
            assert "metadata" not in about
            assert "<" in (await web.get(f"{target}?t=info")).text
            for query in ("t=nonsense", "t=JSON"):
                assert (await web.get(f"{target}?{query}")).status == 400
            assert (await web.request("HEAD", f"{target}?t=json")).status == 400
            folder = await folder_of(web, child=Child(target=cap, metadata={"a": 1}))
            assert json.loads((await web.get(f"{folder}/child?t=json")).text)[1]["metadata"] == {"a": 1}


async def test_cap_when_it_cannot_be_read_then_shows_only_what_is_known(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        for cap in await every_kind(web, DATA):
            verify = cap.verify_cap()
            assert verify is not None
            for query in ("", "?t=uri", "?t=readonly-uri", "?save=true"):
                assert (await web.get(f"/uri/{verify.to_string()}{query}")).status == 400
            kind, about = json.loads((await web.get(f"/uri/{verify.to_string()}?t=json")).text)
            assert kind == "filenode" and about["verify_uri"] == verify.to_string() and "ro_uri" not in about
        for unknown in ("nonsense", "x-future:abc", "ro.x-future:abc", "URI:CHK:short"):
            refused = await web.get(f"/uri/{unknown}")
            assert refused.status == 400 and "Was it copied completely?" in refused.text
            assert (await web.request("HEAD", f"/uri/{unknown}")).status == 400
            assert json.loads((await web.get(f"/uri/{unknown}?t=json")).text)[0] == "unknown"
            assert (await web.get(f"/uri/{unknown}?t=info")).status == 200
        assert json.loads((await web.get("/uri/nonsense?t=json")).text) == ["unknown", {}]
        assert (await web.get(f"/uri/{LitCap(data=b'x').to_string()}%0A")).body == b"x"


async def test_file_when_lost_then_has_its_own_status_and_shows_what_its_cap_says(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        kinds = await every_kind(web, DATA)
    async with gateway_of_files(tmp_path) as web:
        for cap, words in zip(
            kinds, ("NoSharesError: ", "UnrecoverableFileError: ", "UnrecoverableFileError: "), strict=True
        ):
            target = f"/uri/{cap.to_string()}"
            for headers in ({}, {"Range": "bytes=0-9"}):
                reply = await web.request("GET", target, headers=headers)
                assert reply.status == 410 and reply.text.startswith(words)
                assert cap.to_string() not in reply.text
            assert ("size" in json.loads((await web.get(f"{target}?t=json")).text)[1]) == (not cap.is_mutable)
            assert (await web.request("HEAD", target)).status == (410 if cap.is_mutable else 200)
            assert (await web.get(f"{target}?t=uri")).text == cap.to_string()


async def test_file_when_lost_in_the_middle_then_the_connection_ends_and_nothing_false_is_sent(tmp_path: Path) -> None:
    data = random.Random(9).randbytes(40_000_000)
    servers = [ScriptedServer(f"s{index}", ReactorClock(reactor)) for index in range(3)]
    async with gateway_of_files(tmp_path, servers=servers) as web:
        cap = await web.gateway.store.put_immutable(MemorySource(data))
        connection = await web.connect()
        connection.send(web.head("GET", f"/uri/{cap.to_string()}", 0, {"Connection": "keep-alive"}))
        await connection.at_least(100_000)
        connection.transport.pauseProducing()
        for server in servers:
            server.shares.clear()
        connection.transport.resumeProducing()
        reply = await connection.reply()
        assert reply.is_short and reply.headers["content-length"] == str(len(data))
        assert 0 < len(reply.body) < len(data) and data.startswith(reply.body)


async def test_client_when_it_goes_away_then_the_read_ends(tmp_path: Path) -> None:
    data = random.Random(9).randbytes(40_000_000)
    async with gateway_of_files(tmp_path) as web:
        cap = await web.gateway.store.put_immutable(MemorySource(data))
        connection = await web.connect()
        connection.send(web.head("GET", f"/uri/{cap.to_string()}", 0))
        await connection.at_least(100_000)
        assert len(web.factory.requests) == 1
        await connection.close()
        while web.factory.requests:
            await web.gateway.store.runtime.clock.sleep(0.01)


async def test_range_of_a_mutable_file_when_the_file_is_known_then_takes_one_request_per_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Sequence[Range]] = []
    read_slot = StorageService.read_slot

    async def counted(
        server: StorageService, storage_index: StorageIndex, numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        asked.append(ranges)
        return await read_slot(server, storage_index, numbers, ranges)

    monkeypatch.setattr(StorageService, "read_slot", counted)
    async with gateway_of_files(tmp_path) as web:
        cap = await web.gateway.store.put_mutable(LONG, format="mdmf")
        for header, expected in [("bytes=700000-700099", LONG[700_000:700_100]), ("bytes=-9", LONG[-9:])]:
            asked.clear()
            reply = await web.get(f"/uri/{cap.read_cap().to_string()}", Range=header)
            assert (reply.status, reply.body) == (206, expected)
            assert len(asked) == len(web.gateway.store.grid.servers)
            assert any(len(ranges) > 1 for ranges in asked)
        asked.clear()
        reply = await web.get(f"/uri/{cap.to_string()}", Range=f"bytes={len(LONG)}-")
        assert reply.status == 416 and all(len(ranges) == 1 for ranges in asked)
        reply = await web.get(f"/uri/{cap.to_string()}")
        assert (reply.status, reply.body) == (200, LONG)


async def test_file_when_it_may_not_be_shown_then_only_its_caps_are(tmp_path: Path) -> None:
    class Blocks:
        def reason(self, storage_index: bytes) -> str | None:
            return "not today"

    async with gateway_of_files(tmp_path) as web:
        kinds = await every_kind(web, DATA)
        web.gateway.blocks = Blocks()
        for cap in kinds:
            target = f"/uri/{cap.to_string()}"
            reply = await web.get(target, If_None_Match="*")
            assert (reply.status, reply.text.strip()) == (403, "Access Prohibited: not today")
            assert (await web.request("HEAD", target)).status == 403
            assert (await web.get(f"{target}?t=uri")).text == cap.to_string()
            assert json.loads((await web.get(f"{target}?t=json")).text)[0] == "filenode"
            if cap.is_mutable:
                assert "size" not in json.loads((await web.get(f"{target}?t=json")).text)[1]
                assert (await web.put(target, b"x")).status == 403
                assert (await web.post_form(f"{target}?t=upload", {"file": ("x", b"x")})).status == 403
        assert (await web.get(f"/uri/{LitCap(data=b'x').to_string()}")).status == 200
