"""What every StorageServer does, including storing and finishing whole shares. Derive test classes from WholeSharesContract."""

from __future__ import annotations

import os

import pytest
from twisted.internet.defer import Deferred, DeferredList, ensureDeferred

from grid.errors import DataTooLargeError, GridError
from grid.ports import StorageIndex, StorageServer, StoreAnswer
from tests.contract.storage_server import (
    WHOLE,
    StorageServerContract,
    begin,
    fresh_index,
    piece,
    plain,
    put,
    share_numbers,
    whole,
)


def stored() -> StoreAnswer:
    """All was stored."""
    return StoreAnswer(already=frozenset(), stored=True)


def refused() -> StoreAnswer:
    """Nothing was held, and nothing was stored."""
    return StoreAnswer(already=frozenset(), stored=False)


async def _store_one(server: StorageServer, index: StorageIndex, number: int) -> StoreAnswer:
    (answer,) = await server.store_shares([whole(index, {number: bytes([number]) * (3000 * number + 1)})])
    return answer


async def _find(server: StorageServer, index: StorageIndex) -> dict[int, list[bytes]]:
    return plain(await server.find_shares(index, [WHOLE, (0, 2)]))


class WholeSharesContract(StorageServerContract):
    """The suite, with stores and finished uploads."""

    async def test_store_when_nothing_is_held_stores_every_share(self, server: StorageServer) -> None:
        index, other = fresh_index(), fresh_index()
        stores = [whole(index, {0: b"one share", 255: b"the other"}), whole(other, {3: b"3"})]
        assert list(await server.store_shares(stores)) == [stored(), stored()]
        assert plain(await server.find_shares(index, [WHOLE])) == {0: [b"one share"], 255: [b"the other"]}
        assert plain(await server.find_shares(other, [WHOLE])) == {3: [b"3"]}

    async def test_store_when_any_share_is_held_names_all_held_and_stores_none(self, server: StorageServer) -> None:
        index = fresh_index()
        await put(server, index, {1: b"aa", 2: b"bb"})
        for numbers in ([1], [2, 3], [7]):
            (answer,) = await server.store_shares([whole(index, dict.fromkeys(numbers, b"zz"))])
            assert answer == StoreAnswer(already=share_numbers(1, 2), stored=False)
        assert plain(await server.find_shares(index, [WHOLE])) == {1: [b"aa"], 2: [b"bb"]}

    async def test_store_when_repeated_finds_what_it_stored(self, server: StorageServer) -> None:
        index = fresh_index()
        first = await server.store_shares([whole(index, {5: b"once"})])
        again = await server.store_shares([whole(index, {5: b"once"})])
        assert [*first, *again] == [stored(), StoreAnswer(already=share_numbers(5), stored=False)]

    async def test_store_when_the_share_is_being_uploaded_stores_nothing(self, server: StorageServer) -> None:
        index = fresh_index()
        upload = await begin(server, index, [0], 2)
        assert list(await server.store_shares([whole(index, {0: b"no", 1: b"no"})])) == [refused()]
        await upload.write([piece(0, 0, b"me")])
        await upload.close(share_numbers(0))
        assert plain(await server.find_shares(index, [WHOLE])) == {0: [b"me"]}

    async def test_find_when_many_are_asked_for_at_once_answers_each(self, server: StorageServer) -> None:
        indexes = [fresh_index() for _ in range(20)]
        for number, index in enumerate(indexes[:10]):
            await put(server, index, {number: b"share %d" % number, 200: b"another"})
        asked = [ensureDeferred(_find(server, index)) for index in indexes]
        answers = [found for _, found in await DeferredList(asked, consumeErrors=True)]
        held = [{number: [b"share %d" % number, b"sh"], 200: [b"another", b"an"]} for number in range(10)]
        assert answers == [*held, *({} for _ in range(10))]

    async def test_store_when_many_are_asked_for_at_once_answers_each(self, server: StorageServer) -> None:
        indexes = [fresh_index() for _ in range(12)]
        calls = [ensureDeferred(_store_one(server, index, position)) for position, index in enumerate(indexes)]
        assert [outcome for _, outcome in await DeferredList(calls)] == [stored()] * 12
        for position, index in enumerate(indexes):
            found = plain(await server.find_shares(index, [WHOLE]))
            assert found == {position: [bytes([position]) * (3000 * position + 1)]}

    async def test_upload_when_finished_while_writes_are_under_way_has_all_of_them(self, server: StorageServer) -> None:
        index = fresh_index()
        data = os.urandom(2**21 + 17)
        upload = await begin(server, index, [0, 9], len(data))
        view, middle = memoryview(data), 2**20
        first = Deferred.fromCoroutine(upload.write([piece(0, 0, view[:middle]), piece(9, 0, view[:middle])]))
        last = Deferred.fromCoroutine(upload.finish([piece(0, middle, view[middle:]), piece(9, middle, view[middle:])]))
        await first
        await last
        assert plain(await server.find_shares(index, [(0, len(data))])) == {0: [data], 9: [data]}
        with pytest.raises(GridError):
            await upload.finish([piece(0, 0, b"xx")])

    async def test_upload_when_a_write_under_way_is_refused_finishes_nothing(self, server: StorageServer) -> None:
        index = fresh_index()
        upload = await begin(server, index, [0], 10)
        first = Deferred.fromCoroutine(upload.write([piece(0, 8, b"891")]))
        last = Deferred.fromCoroutine(upload.finish([piece(0, 3, b"3456789")]))
        with pytest.raises(DataTooLargeError):
            await first
        with pytest.raises(GridError):
            await last
        await upload.abort()
        assert plain(await server.find_shares(index)) == {}
