"""Unlinked files: storing, reading by capability, and downloading under a name."""

from __future__ import annotations

import random
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from attrs import evolve

from grid.caps import ChkCap, LitCap, MdmfWriteCap, SdmfWriteCap, parse_cap
from grid.crypto.rsa import generate_key
from grid.gateway.shared.services import LOOPBACK_HOSTS
from grid.sinks import BytesSink
from tests.gateway.one_level import folder_of, gateway_of_files
from tests.support.web_gateway import WebGateway

SIZES = [0, 55, 56, 5000, 1_000_000, 3_000_001]


def sample_bytes(size: int) -> bytes:
    return random.Random(size).randbytes(size)


async def stored(web: WebGateway, text: str) -> bytes:
    """What the capability in an answer leads to."""
    cap = parse_cap(text)
    sink = BytesSink()
    await web.gateway.store.read(cap, sink)  # type: ignore[arg-type]
    return bytes(sink.data)


@pytest.mark.parametrize("size", SIZES)
async def test_body_when_put_in_any_format_then_is_stored_and_its_cap_answered(tmp_path: Path, size: int) -> None:
    async with gateway_of_files(tmp_path) as web:
        kinds = {"chk": ChkCap if size > 55 else LitCap, "SDMF": SdmfWriteCap, "mdmf": MdmfWriteCap, "": ChkCap}
        for format, kind in kinds.items():
            reply = await web.put(f"/uri?format={format}", sample_bytes(size))
            assert (reply.status, reply.headers["content-type"]) == (200, "text/html")
            assert isinstance(parse_cap(reply.text), kind if format else (ChkCap, LitCap))
            assert await stored(web, reply.text) == sample_bytes(size)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", SIZES)
async def test_body_when_its_size_is_not_given_then_is_the_same_file(tmp_path: Path, size: int) -> None:
    async with gateway_of_files(tmp_path) as web:
        said = (await web.put("/uri", sample_bytes(size))).text
        for format in ("chk", "mdmf", "sdmf"):
            connection = await web.connect()
            connection.send(web.head("PUT", f"/cap?format={format}", None))
            for start in range(0, size, 700_000):
                piece = sample_bytes(size)[start : start + 700_000]
                connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            connection.send(b"0\r\n\r\n")
            reply = await connection.reply()
            assert reply.status == 200
            assert await stored(web, reply.text) == sample_bytes(size)
            assert reply.text == said or format != "chk"


async def test_body_when_mutable_is_asked_for_then_is_sdmf_unless_a_format_is(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        assert isinstance(parse_cap((await web.put("/uri?mutable=on", b"x")).text), SdmfWriteCap)
        assert isinstance(parse_cap((await web.put("/uri?mutable=true&format=chk", b"x")).text), LitCap)
        assert isinstance(parse_cap((await web.put("/uri?mutable=nonsense&format=chk", b"x")).text), LitCap)
        assert (await web.put("/uri?mutable=nonsense", b"x")).status == 400
        assert (await web.put("/uri?format=nonsense", b"x")).status == 400
        assert (await web.put("/uri?t=nonsense", b"x")).status == 400


async def test_key_when_given_then_is_that_of_the_file_and_for_immutable_ones_ignored(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        key = generate_key()
        text = urlsafe_b64encode(key.der).decode()
        for format in ("sdmf", "mdmf"):
            cap = parse_cap((await web.put(f"/uri?format={format}&private-key={text}", b"x")).text)
            assert isinstance(cap, SdmfWriteCap | MdmfWriteCap) and cap.write_key == key.write_key
            await folder_of(web)
            key = generate_key()
            text = urlsafe_b64encode(key.der).decode()
        refused = await web.put("/uri?format=sdmf&private-key=AAAA", b"x")
        assert refused.status == 400 and "AAAA" not in refused.text
        assert (await web.put("/uri?private-key=AAAA", b"x")).status == 200


async def test_form_when_posted_then_its_file_is_stored(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        data = sample_bytes(2_500_000)
        cap = (await web.put("/uri", data)).text
        reply = await web.post_form("/uri?t=upload", {"file": ("a name", data)})
        assert reply.status == 200 and cap in reply.text and reply.headers["content-type"].startswith("text/html")
        reply = await web.post_form("/uri", {"file": ("a", data), "t": "upload", "format": "mdmf"})
        assert isinstance(parse_cap(reply.text), MdmfWriteCap) and await stored(web, reply.text) == data
        assert (await web.post_form("/uri?t=upload", {"other": "x"})).status == 400
        assert (await web.post_form("/uri?t=nonsense", {"file": ("a", data)})).status == 400
        assert (await web.request("POST", "/uri?t=upload", data)).status == 400
        assert list(tmp_path.iterdir()) == []


async def test_form_when_done_then_redirects_where_it_says_but_never_elsewhere(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        file = {"file": ("a", b"x" * 100)}
        cap = (await web.put("/uri", b"x" * 100)).text
        origin = f"http://127.0.0.1:{web.port}"
        reply = await web.post_form("/uri?t=upload&when_done=/uri/%25(uri)s%3Ft=info", file)
        assert reply.status == 302
        assert reply.headers["location"] == f"{origin}/uri/{quote(cap, safe='')}?t=info"
        assert (await web.post_form("/uri?t=upload", {**file, "when_done": "/x"})).headers["location"] == f"{origin}/x"
        assert (await web.post_form("/uri?t=upload&when_done=//example.org/", file)).status == 400
        reply = await web.post_form("/uri?t=upload&format=sdmf&when_done=/x", file)
        assert reply.status == 200 and isinstance(parse_cap(reply.text), SdmfWriteCap)


async def test_cap_when_in_an_argument_then_leads_to_its_path(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        origin = f"http://127.0.0.1:{web.port}"
        reply = await web.get("/uri?uri=URI%3ALIT%3Aorsxg5a&t=json&filename=a%20b")
        assert reply.status == 302
        assert reply.headers["location"] == f"{origin}/uri/URI%3ALIT%3Aorsxg5a?t=json&filename=a+b"
        reply = await web.request("HEAD", "/uri?uri=URI%3ALIT%3Aorsxg5a&x=%ff")
        assert reply.status == 302 and reply.headers["location"] == f"{origin}/uri/URI%3ALIT%3Aorsxg5a?x=%FF"
        for target in ("/uri", "/uri?uri=nonsense", "/uri?uri="):
            assert (await web.get(target)).status == 400
        assert (await web.request("DELETE", "/uri")).status == 501


LIT = "URI%3ALIT%3Aorsxg5a"


@asynccontextmanager
async def gateway_with_names(folder: Path) -> AsyncIterator[WebGateway]:
    """A gateway that answers to its local names only."""
    async with gateway_of_files(folder) as web:
        web.gateway.settings = evolve(web.gateway.settings, hosts=LOOPBACK_HOSTS)
        yield web


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (f"https://files.example:8443/uri/{LIT}", f"/uri/{LIT}"),
        (f"http://127.0.0.1/uri/{LIT}/a%20b/%2F/?filename=x%20y&t=info#part", f"/uri/{LIT}/a%20b/%2F/?filename=x+y"),
        (f"files.example/uri/{LIT}/", f"/uri/{LIT}/"),
        ("https://files.example/uri/URI:LIT:orsxg5a", f"/uri/{LIT}"),
        (f" HTTPS://files.example/file/{LIT}/@@named=/a.jpg\n", f"/file/{LIT}/%40%40named%3D/a.jpg"),
        (LIT, f"/uri/{LIT}"),
        ("https://127.0.0.1:9/s/abc/", "/s/abc/"),
        ("localhost/s/abc", "/s/abc"),
    ],
)
async def test_link_when_pasted_for_a_capability_then_leads_to_its_place_here(
    tmp_path: Path, given: str, path: str
) -> None:
    async with gateway_with_names(tmp_path) as web:
        reply = await web.get(f"/uri?uri={quote(given, safe='')}")
        assert (reply.status, reply.headers.get("location")) == (302, f"http://127.0.0.1:{web.port}{path}")
        saved = await web.get(f"/uri?save=true&filename=z&uri={quote(given, safe='')}")
        assert saved.headers["location"].endswith("?save=true&filename=z")


@pytest.mark.parametrize(
    "given",
    [
        "https://files.example/",
        "https://files.example/uri/nonsense",
        "https://files.example/uri/",
        f"https://files.example/other/{LIT}",
        f"https://files.example/uri/{LIT}/../../private",
        f"https://files.example/uri/{LIT}/%2e%2e/x",
        f"https://files.example/uri/{LIT}/%ff",
        f"https://user@files.example/uri/{LIT}",
        f"javascript:alert(1)/uri/{LIT} x",
        "https://files.example/s/abc",
        "//files.example/s/abc",
    ],
)
async def test_link_when_it_leads_to_nothing_here_then_is_refused(tmp_path: Path, given: str) -> None:
    async with gateway_with_names(tmp_path) as web:
        reply = await web.get(f"/uri?uri={quote(given, safe='')}")
        assert reply.status == 400 and "uri=" not in reply.text and LIT not in reply.text
        assert ("another gateway" in reply.text) == ("files.example/s/" in given and given[0] == "h")
        assert (await web.get("/uri?uri=https://files.example/uri/%ff%ed")).status == 400


async def test_named_when_a_file_is_asked_for_then_its_last_name_says_its_type(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        cap = quote((await web.put("/uri", b"x" * 100)).text, safe="")
        for prefix in ("file", "named"):
            for path, kind in [
                ("", "text/plain"),
                ("/a.html", "text/html"),
                ("/@@named=/a.png", "image/png"),
                ("/", "text/plain"),
            ]:
                reply = await web.get(f"/{prefix}/{cap}{path}")
                assert (reply.status, reply.headers["content-type"], reply.body) == (200, kind, b"x" * 100)
            reply = await web.get(f"/{prefix}/{cap}/a.html?filename=b.png")
            assert reply.headers["content-type"] == "image/png"
            assert (await web.request("HEAD", f"/{prefix}/{cap}/a.html")).headers["content-length"] == "100"
            assert (await web.put(f"/{prefix}/{cap}/a", b"y")).status == 400
            assert (await web.get(f"/{prefix}")).status == 404
            assert (await web.get(f"/{prefix}/")).status == 400
            for malformed in ("nonsense", "URI:CHK:short"):
                refused = await web.get(f"/{prefix}/{malformed}")
                assert refused.status == 400 and "Was it copied completely?" in refused.text
            assert (await web.get(f"/{prefix}/URI%3ADIR2-LIT%3A")).status == 400
