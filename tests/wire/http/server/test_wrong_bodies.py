"""Chunked bodies with impossible or minimal chunk sizes."""

from __future__ import annotations

import pytest

from grid.wire.http.format.messages import parse_request_head, request_body
from grid.wire.http.server.exchange import Exchange
from tests.wire.http.rig import make_service, running
from tests.wire.http.server.test_listeners import request, wired
from tests.wire.http.server.test_long_bodies import Connection

BAD_CHUNKS = [b"f" * 17, b"f" * 16, b"-1", b"", b"0x5", b"5;a=\0", b"5;" + b"x" * 20000, b"0\r\n" + b"A: b\r\n" * 5000]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "PATCH"])
async def test_body_whose_chunk_has_an_impossible_size_is_refused_at_once(method: str) -> None:
    async with running(await make_service()) as rig:
        for size in BAD_CHUNKS:
            async with wired(rig.port, tls=True) as wire:
                start = request("version", method, ("Transfer-Encoding", "chunked"))
                wire.transport.write(start + size + b"\r\nhello\r\n0\r\n\r\n" + request("version"))
                await wire.lost
                assert wire.received.startswith(b"HTTP/1.1 400 "), (method, size[:20], wire.received[:40])
                assert wire.received.count(b"HTTP/1.1 ") == 1


async def test_body_in_the_smallest_chunks_is_kept_in_few_pieces() -> None:
    channel = Connection("a")
    head = parse_request_head(b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked")
    exchange = Exchange(channel, head, request_body(head.headers))
    for _ in range(100):
        exchange.feed(b"1\r\nx\r\n" * 1000)
    exchange.feed(b"0\r\n\r\n")
    pieces = await exchange.read_piece(100_000)
    assert b"".join(pieces) == b"x" * 100_000
    assert len(pieces) <= 100_000 // 4096 + 1
