"""Answers too long to hold: read and sent in parts, to clients that do not notice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from foolscap.api import DeadReferenceError, RemoteException
from foolscap.broker import Broker
from twisted.internet import reactor

from grid.ports import ShareNumber, StorageIndex, TestWrite
from grid.runtime import ReactorClock
from grid.storage.calls.service import StorageService
from grid.wire.budget.answer_budget import AnswerBudget
from grid.wire.foolscap.outgoing import PART_SIZE
from grid.wire.foolscap.server import reading
from grid.wire.foolscap.server.server import RemoteStorageServer
from grid.wire.foolscap.tub import start_tub, stop_tub
from tests.contract.storage_server import put, slot_secrets
from tests.wire.foolscap.loopback import offering
from tests.wire.http.rig import make_service

FILE, SLOT = StorageIndex(b"f" * 16), StorageIndex(b"s" * 16)
SIZE = 5 * PART_SIZE + 1234
BUDGET = 2 * PART_SIZE
DATA = bytes(range(251)) * (SIZE // 251 + 1)
DATA = DATA[:SIZE]


@asynccontextmanager
async def scene(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Any, AnswerBudget, StorageService]]:
    """A server whose budget is less than its shares, as 1.20's clients see it."""
    monkeypatch.setattr(reading, "READ_CALL_BYTES", PART_SIZE)
    service = await make_service()
    await put(service, FILE, {1: DATA})
    await service.test_and_write(
        SLOT, slot_secrets(), {ShareNumber(n): TestWrite(tests=[], writes=[(0, DATA)], new_length=None) for n in (0, 3)}
    )
    budget = AnswerBudget(ReactorClock(reactor), BUDGET)
    async with offering(RemoteStorageServer(service, budget)) as offered:
        tub = start_tub()
        tub.brokerClass = Broker
        try:
            yield await tub.getReference(offered.furl.to_string()), budget, service
        finally:
            await stop_tub(tub)
            await service.stop()
    assert budget.held_size == budget.waiting_count == 0


async def test_share_when_longer_than_the_budget_is_read_whole_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch) as (server, _, _service):
        reader = (await server.callRemote("get_buckets", FILE))[1]
        for offset, length in ((0, SIZE), (0, 2**40), (7, SIZE - 9), (SIZE, 2**30), (SIZE - 1, 2**30)):
            assert await reader.callRemote("read", offset, length) == DATA[offset : offset + length]


async def test_slot_when_longer_than_the_budget_is_read_whole_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch) as (server, _, _service):
        ranges = [(0, SIZE), (1, 3), (SIZE - 5, 2**40), (SIZE, 1)]
        pieces = [DATA[offset : offset + length] for offset, length in ranges]
        assert await server.callRemote("slot_readv", SLOT, [], ranges) == {0: pieces, 3: pieces}
        assert await server.callRemote("slot_readv", SLOT, [3], ranges) == {3: pieces}


async def test_calls_when_another_answer_is_being_streamed_are_answered_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch) as (server, _, _service):
        sent = [server.callRemote("slot_readv", SLOT, [3], [(0, length)]) for length in (SIZE, 5, SIZE, 7, SIZE)]
        assert [len((await each)[3][0]) for each in sent] == [SIZE, 5, SIZE, 7, SIZE]


async def test_share_when_it_shrinks_while_it_is_sent_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch) as (server, budget, service):
        transport = server.tracker.broker.transport
        transport.pauseProducing()
        sent = server.callRemote("slot_readv", SLOT, [3], [(0, SIZE)])
        clock = ReactorClock(reactor)
        while not budget.held_size:
            await clock.sleep(0.01)
        shorter = TestWrite(tests=[], writes=[], new_length=10)
        await service.test_and_write(SLOT, slot_secrets(), {ShareNumber(3): shorter})
        transport.resumeProducing()
        with pytest.raises(DeadReferenceError):
            await sent


async def test_client_when_it_goes_in_the_middle_of_a_stream_leaves_nothing_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene(monkeypatch) as (server, budget, _service):
        transport = server.tracker.broker.transport
        transport.pauseProducing()
        sent = server.callRemote("slot_readv", SLOT, [3], [(0, SIZE)])
        clock = ReactorClock(reactor)
        while not budget.held_size:
            await clock.sleep(0.01)
        transport.abortConnection()
        with pytest.raises(DeadReferenceError):
            await sent
        while budget.held_size:
            await clock.sleep(0.01)


async def test_write_when_its_answer_never_fits_is_refused_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene(monkeypatch) as (server, _, service):
        secrets = slot_secrets()
        words = (secrets.write_enabler, secrets.lease.renew, secrets.lease.cancel)
        vectors: dict[int, Any] = {3: ([], [(0, b"changed")], None)}
        with pytest.raises(RemoteException) as refused:
            await server.callRemote("slot_testv_and_readv_and_writev", SLOT, words, vectors, [(0, SIZE)])
        assert "DataTooLargeError" in repr(refused.value.failure)
        found = await service.read_slot(SLOT, frozenset((ShareNumber(3),)), [(0, 7)])
        assert found == {3: [DATA[:7]]}
