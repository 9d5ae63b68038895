"""Reading ahead from a server without batches: the requests, their cost, and broken streams."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from twisted.internet import reactor
from twisted.internet.task import deferLater

from grid.ports import ShareNumber, StorageIndex
from grid.wire.http.client import streams
from grid.wire.http.client.requester import all_of
from grid.wire.http.server.channel import ServerChannel
from tests.contract.storage_server import plain, put
from tests.wire.http.rig import Rig, make_service, running

INDEX = StorageIndex(bytes(16))
ONE = ShareNumber(1)
STEP = 100_000
SIZE = 3_000_000
DATA = os.urandom(SIZE)


@asynccontextmanager
async def reading(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Rig, list[bytes]]]:
    """A server without extensions that has DATA, and the Range headers that it was asked with."""
    asked: list[bytes] = []
    serve = ServerChannel._serve

    def watched(channel: ServerChannel, exchange: object, rest: bytes) -> None:
        asked.extend(exchange.head.headers.get(b"range", ()))  # type: ignore[attr-defined]
        serve(channel, exchange, rest)  # type: ignore[arg-type]

    monkeypatch.setattr(ServerChannel, "_serve", watched)
    service = await make_service()
    await put(service, INDEX, {1: DATA})
    async with running(service, extensions=False) as rig:
        yield rig, asked


async def read(rig: Rig, offset: int, length: int = STEP) -> bytes:
    return plain(await rig.client.read_shares(INDEX, {ONE: [(offset, length)]}))[1][0]


async def test_share_when_read_in_order_is_asked_for_by_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    async with reading(monkeypatch) as (rig, asked):
        for offset in range(0, SIZE + 2 * STEP, STEP):
            assert await read(rig, offset) == DATA[offset : offset + STEP]
        assert len(asked) <= 2 + streams.STREAK_BYTES // STEP + 2
        assert asked[-1].startswith(b"bytes=") or not asked


async def test_share_when_read_in_order_by_several_at_once_is_given_to_each(monkeypatch: pytest.MonkeyPatch) -> None:
    async with reading(monkeypatch) as (rig, asked):
        found = await all_of(read(rig, offset) for offset in range(0, SIZE, STEP))
        assert b"".join(found) == DATA
        assert len(asked) <= 2 + streams.STREAK_BYTES // STEP


async def test_share_when_read_here_and_there_is_asked_for_range_by_range(monkeypatch: pytest.MonkeyPatch) -> None:
    async with reading(monkeypatch) as (rig, asked):
        for offset in range(SIZE - STEP, 0, -2 * STEP):
            assert await read(rig, offset) == DATA[offset : offset + STEP]
        assert len(asked) == len(range(SIZE - STEP, 0, -2 * STEP))
        assert rig.client._ahead._streams == {}


async def test_stream_when_its_connection_is_lost_leaves_the_reader_unharmed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with reading(monkeypatch) as (rig, _):
        monkeypatch.setattr(streams, "AHEAD_BYTES", 1)
        for offset in range(0, SIZE, STEP):
            if offset in (10 * STEP, 20 * STEP):
                assert rig.client._ahead._streams or offset != 10 * STEP
                rig.offer.connections.close()
                await deferLater(reactor, 0.05)
            assert await read(rig, offset) == DATA[offset : offset + STEP]


async def test_stream_when_the_reader_goes_elsewhere_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with reading(monkeypatch) as (rig, _):
        monkeypatch.setattr(streams, "AHEAD_BYTES", 1)
        for offset in range(0, 9 * STEP, STEP):
            await read(rig, offset)
        (stream,) = rig.client._ahead._streams.values()
        # Only now: on a busy machine, reads are further apart than that.
        monkeypatch.setattr(streams, "IDLE_S", 0.05)
        await read(rig, 9 * STEP)
        assert await read(rig, 5, 10) == DATA[5:15]
        while not stream.is_over:
            await deferLater(reactor, 0.02)
        assert await read(rig, 10 * STEP) == DATA[10 * STEP : 11 * STEP]
