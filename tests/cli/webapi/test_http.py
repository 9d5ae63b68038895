"""Requests to gateways with invalid answers."""

from __future__ import annotations

import pytest
from twisted.internet import reactor
from twisted.internet.task import deferLater

from grid.cli.webapi.address import parse_address
from grid.cli.webapi.agent import MAX_HEAD
from grid.cli.webapi.http import GatewayClient
from grid.cli.webapi.refusals import GatewayError
from grid.errors import GridError, PeerGoneError, PeerTimeoutError
from tests.cli.webapi.scripted import Asked, Reply, reply, scripted


async def test_redirect_when_answered_is_not_followed() -> None:
    async with scripted(lambda asked: reply("", "302 Found", Location="http://127.0.0.1:1/x")) as (gateway, store):
        with pytest.raises(GatewayError, match="redirects"):
            await store.client.text("GET", ["uri", "secret"])
    assert len(gateway.asked) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * (MAX_HEAD // 6),
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * (MAX_HEAD // 28 + 1),
    ],
)
@pytest.mark.parametrize("once", [False, True])
async def test_answer_whose_head_does_not_end_is_given_up(data: bytes, once: bool) -> None:
    async with scripted([Reply(data)]) as (gateway, store):
        with pytest.raises(GatewayError, match="answer are too long"):
            await store.client.text("GET", ["uri", "secret"], once=once)
        while gateway.open:
            await deferLater(reactor, 0.01)


async def test_answers_when_many_on_a_connection_may_have_long_heads_together() -> None:
    answers = [reply("URI:", A="b" * 9000) for _ in range(MAX_HEAD // 9000 + 2)]
    async with scripted(answers) as (_, store):
        assert [await store.client.text("GET", ["uri"]) for _ in answers] == ["URI:"] * len(answers)


async def test_answer_that_says_it_is_packed_is_taken_as_it_is() -> None:
    async with scripted([reply(b"as stored", Content_Encoding="gzip")]) as (gateway, store):
        assert await store.client.text("GET", ["uri"]) == "as stored"
    assert gateway.asked[0].headers["accept-encoding"] == "identity"


async def test_text_when_longer_than_any_capability_is_refused() -> None:
    async with scripted([reply(b"x" * 100_000)]) as (_, store):
        with pytest.raises(GatewayError, match="longer than"):
            await store.client.text("GET", ["uri"])


async def test_json_when_larger_than_its_limit_is_refused_before_all_of_it_came() -> None:
    endless = Reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"10000\r\n" + b"[" * 65536 + b"\r\n")
    async with scripted([endless]) as (_, store):
        with pytest.raises(GatewayError, match="longer than"):
            await store.client.json("GET", ["uri"], limit=1000)


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b"\xff\xff", b"<html>", b"9" * 6000])
async def test_json_when_invalid_is_refused(body: bytes) -> None:
    async with scripted([reply(body)]) as (_, store):
        with pytest.raises(GatewayError, match="not the JSON"):
            await store.client.json("GET", ["uri"], limit=2**20)


async def test_text_when_not_utf_8_is_refused() -> None:
    async with scripted([reply(b"URI:\xff")]) as (_, store):
        with pytest.raises(GatewayError, match="not text"):
            await store.client.text("GET", ["uri"])


async def test_answer_when_broken_off_is_an_error() -> None:
    async with scripted([reply(b"short", length=100, closes=True)]) as (_, store):
        with pytest.raises(PeerGoneError, match="broke"):
            await store.client.text("GET", ["uri"])


async def test_answer_without_an_end_of_its_own_is_an_error() -> None:
    async with scripted([Reply(b"HTTP/1.1 200 OK\r\n\r\nURI:", closes=True)]) as (_, store):
        with pytest.raises(PeerGoneError, match="where it ends"):
            await store.client.text("GET", ["uri"])


async def test_answer_that_stalls_is_given_up() -> None:
    async with scripted([reply(b"short", length=100)]) as (_, store):
        with pytest.raises(PeerTimeoutError, match="sent nothing"):
            await store.client.text("GET", ["uri"], stall_s=0.05)


@pytest.mark.parametrize("data", [b"SSH-2.0-x\r\n", b"HTTP/1.1 abc\r\n\r\n", b""])
async def test_answer_that_is_not_http_is_an_error(data: bytes) -> None:
    async with scripted([Reply(data, closes=True)]) as (_, store):
        with pytest.raises(GridError) as caught:
            await store.client.text("GET", ["uri", "secret"])
    assert "secret" not in str(caught.value)


async def test_gateway_that_is_not_there_is_named_without_the_path() -> None:
    async with scripted([]) as (_, store):
        client = GatewayClient(parse_address("http://127.0.0.1:1/", "x"), store.runtime, reactor)
        with pytest.raises(PeerGoneError, match=r"127\.0\.0\.1:1 cannot be reached") as caught:
            await client.text("GET", ["uri", "secret"])
    assert "secret" not in str(caught.value)


async def test_gateway_whose_name_is_impossible_is_named() -> None:
    async with scripted([]) as (_, store):
        client = GatewayClient(parse_address("http://a..b:1/", "x"), store.runtime, reactor)
        with pytest.raises(GatewayError, match=r"a\.\.b:1 has a host name that cannot be looked up"):
            await client.text("GET", ["uri", "secret"])


async def test_segments_and_arguments_are_quoted_whole() -> None:
    async with scripted([reply("x")]) as (gateway, store):
        await store.client.text("POST", ["uri", "a/b", "..", "%", "ü"], [("name", "a&b=c;d +")])
    assert gateway.targets == ["POST /uri/a%2Fb/%2E%2E/%25/%C3%BC?name=a%26b%3Dc%3Bd%20%2B"]


async def test_small_requests_share_a_connection() -> None:
    async with scripted([reply("x"), reply("y")]) as (gateway, store):
        assert await store.client.text("GET", ["a"]) == "x"
        assert await store.client.text("GET", ["b"]) == "y"
        assert len(gateway.open) == 1


async def test_body_that_cannot_be_read_ends_the_request_with_that_error() -> None:
    class Shrunk:
        size = 1000

        async def read_at(self, offset: int, length: int) -> bytes:
            raise GridError("the file became shorter")

    async with scripted([reply("x")]) as (_, store):
        with pytest.raises(GridError, match="became shorter"):
            await store.client.text("PUT", ["uri"], body=Shrunk())


async def test_body_arrives_whole_with_its_length() -> None:
    def answer(asked: Asked) -> Reply:
        return reply(str(len(asked.body)))

    async with scripted(answer) as (gateway, store):
        assert await store.client.text("PUT", ["uri"], body=b"z" * 3_000_000) == "3000000"
    assert gateway.asked[0].headers["content-length"] == "3000000"
    assert "authorization" not in gateway.asked[0].headers
