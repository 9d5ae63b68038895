"""Reading and writing files through gateways that lie about lengths."""

from __future__ import annotations

import pytest

from grid.caps import parse_cap
from grid.caps.values import ChkCap, SdmfWriteCap
from grid.cli.webapi.files import MISTAKE
from grid.cli.webapi.refusals import GatewayError
from grid.errors import AuthorityError, CapError, GridError, NotEnoughSharesError, PeerGoneError
from grid.mutable.sources import MemorySource
from grid.ports import Buffer
from tests.cli.webapi.scripted import Asked, Reply, reply, scripted


class _Memory:
    def __init__(self) -> None:
        self.data = b""

    async def write(self, data: Buffer) -> None:
        self.data += bytes(data)


def chk(size: int) -> ChkCap:
    return ChkCap(key=b"k" * 16, ueb_hash=b"h" * 32, needed=3, total=10, size=size)


WRITE = SdmfWriteCap(write_key=b"w" * 16, fingerprint=b"f" * 32)


async def test_read_of_a_whole_file_gives_its_bytes() -> None:
    sink = _Memory()
    async with scripted([reply(b"sample")]) as (gateway, store):
        assert await store.read(chk(6), sink) == 6
    assert sink.data == b"sample"
    assert "range" not in gateway.asked[0].headers


async def test_read_of_a_mutable_file_shows_the_gateway_its_read_cap_only() -> None:
    async with scripted([reply(b"sample")]) as (gateway, store):
        await store.read(WRITE, _Memory())
    assert "SSK-RO" in gateway.asked[0].target


async def test_read_of_a_literal_file_asks_nobody() -> None:
    sink = _Memory()
    async with scripted([]) as (gateway, store):
        cap = await store.put_immutable(MemorySource(b"small"))
        await store.read(cap, sink, 1, 3)
    assert sink.data == b"mal"
    assert not gateway.asked


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (reply(b"sampl"), GatewayError),
        (reply(b"sample!"), GatewayError),
        (reply(b"oct", length=6, closes=True), PeerGoneError),
        (reply(b"sample", "206 Partial Content", Content_Range="bytes 0-5/6"), GatewayError),
        (Reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nsample\r\n0\r\n\r\n"), GatewayError),
        (reply(b"gone", "410 Gone"), NotEnoughSharesError),
    ],
)
async def test_read_when_the_length_is_not_that_of_the_file_fails(answer: Reply, error: type[GridError]) -> None:
    async with scripted([answer]) as (_, store):
        with pytest.raises(error):
            await store.read(chk(6), _Memory())


async def test_range_is_asked_for_and_checked() -> None:
    sink = _Memory()
    async with scripted([reply(b"ct", "206 Partial Content", Content_Range="bytes 1-2/6")]) as (gateway, store):
        assert await store.read(chk(6), sink, 1, 2) == 2
    assert sink.data == b"ct"
    assert gateway.asked[0].headers["range"] == "bytes=1-2"


@pytest.mark.parametrize(
    "answer",
    [
        reply(b"ct", "206 Partial Content"),
        reply(b"ct", "206 Partial Content", Content_Range="bytes 2-3/6"),
        reply(b"ct", "206 Partial Content", Content_Range="bytes 1-2/7"),
        reply(b"cte", "206 Partial Content", Content_Range="bytes 1-2/6"),
        reply(b"ct", "206 Partial Content", Content_Range="bytes 1-" + "9" * 40 + "/6"),
        reply(b"sample"),
    ],
)
async def test_range_when_another_one_comes_fails(answer: Reply) -> None:
    async with scripted([answer]) as (_, store):
        with pytest.raises(GatewayError):
            await store.read(chk(6), _Memory(), 1, 2)


async def test_file_that_ends_with_the_gateway_s_error_text_is_detected() -> None:
    size = 200_000
    spoiled = b"x" * (size - 10) + MISTAKE[:10]

    def answer(asked: Asked) -> Reply:
        return reply("NotEnoughSharesError: lost", "410 Gone") if "range" in asked.headers else reply(spoiled)

    async with scripted(answer) as (_, store):
        with pytest.raises(NotEnoughSharesError):
            await store.read(chk(size), _Memory())


async def test_file_that_really_ends_with_that_text_is_read() -> None:
    size = 200_000
    raw = b"x" * (size - len(MISTAKE)) + MISTAKE
    sink = _Memory()

    def answer(asked: Asked) -> Reply:
        if "range" not in asked.headers:
            return reply(raw)
        first = size - len(MISTAKE)
        return reply(MISTAKE, "206 Partial Content", Content_Range=f"bytes {first}-{size - 1}/{size}")

    async with scripted(answer) as (gateway, store):
        assert await store.read(chk(size), sink) == size
    assert sink.data == raw
    assert len(gateway.asked) == 2


async def test_size_of_a_mutable_file_that_is_lost_is_an_error() -> None:
    async with scripted([reply(["filenode", {"mutable": True}])]) as (_, store):
        with pytest.raises(NotEnoughSharesError):
            await store.size(WRITE)


async def test_put_sends_the_bytes_and_takes_a_capability_of_their_size() -> None:
    async with scripted([reply(chk(100).to_string() + "\n", "201 Created")]) as (gateway, store):
        assert await store.put_immutable(MemorySource(b"o" * 100)) == chk(100)
    assert gateway.targets == ["PUT /uri"]
    assert gateway.asked[0].body == b"o" * 100


@pytest.mark.parametrize("data", [chk(101).to_string(), WRITE.to_string(), "URI:LIT:", "", "no", "<html>"])
async def test_put_when_the_answer_cannot_be_its_capability_fails(data: str) -> None:
    async with scripted([reply(data)]) as (_, store):
        with pytest.raises(GatewayError) as caught:
            await store.put_immutable(MemorySource(b"o" * 100))
    assert "URI:" not in str(caught.value)


async def test_overwrite_keeps_the_capability_or_fails() -> None:
    async with scripted([reply(WRITE.to_string()), reply(chk(4).to_string())]) as (gateway, store):
        await store.open_mutable(WRITE).overwrite(b"new")
        with pytest.raises(GridError, match="another file"):
            await store.open_mutable(WRITE).overwrite(b"new")
    assert gateway.asked[0].body == b"new"


async def test_what_a_capability_does_not_permit_is_refused_without_asking() -> None:
    verify = parse_cap(chk(6).verify_cap().to_string())
    async with scripted([]) as (_, store):
        with pytest.raises(AuthorityError):
            await store.read(verify, _Memory())  # type: ignore[arg-type]
        with pytest.raises(AuthorityError):
            await store.open_mutable(WRITE.read_cap()).overwrite(b"new")
        with pytest.raises(CapError):
            store.open_mutable(chk(6))
