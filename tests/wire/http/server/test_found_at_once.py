"""Blocks that a find requests: those of one piece are read in the call that finds the shares, the others piece by piece."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import pytest

from grid.ports import LeaseSecrets, NewShares, ShareNumber, StorageIndex
from grid.storage.calls.service import StorageService
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import StorageSettings
from grid.wire.http.server.pieces import LARGEST_PIECE, SMALLEST_PIECE
from tests.wire.http.rig import make_identity, make_runtime, pool_of_threads, running

T = TypeVar("T")

INDEX = StorageIndex(bytes(range(16)))
LEASE = LeaseSecrets(renew=b"r" * 32, cancel=b"c" * 32)
SIZE = 3 * LARGEST_PIECE // 8


class CountedThreads:
    """Threads that count the calls which run on them."""

    width = 2

    def __init__(self) -> None:
        self.count = 0

    def run(self, function: Callable[..., T], *arguments: object) -> Awaitable[T]:
        self.count += 1
        return pool_of_threads().run(function, *arguments)


def text_of(number: int) -> bytes:
    return bytes([number]) * (SIZE - 1) + b"!"


@pytest.mark.parametrize(
    ("held", "asked", "most_calls"),
    [
        pytest.param([], SIZE, 1, id="none"),
        pytest.param([2], SIZE, 1, id="one"),
        pytest.param([2], 9 * LARGEST_PIECE, 1, id="one that ends before what is requested"),
        pytest.param([2], SMALLEST_PIECE, 1, id="little"),
        pytest.param([2, 5], SIZE, 1, id="two of one piece"),
        pytest.param([2, 5, 7], SIZE, 2, id="three of more than a piece"),
        pytest.param([2, 5, 7, 8, 9], SIZE, 3, id="five"),
    ],
)
async def test_found_shares_are_read_in_few_calls(held: Sequence[int], asked: int, most_calls: int) -> None:
    threads = CountedThreads()
    service = StorageService(make_identity(), MemoryDisk(), make_runtime(), StorageSettings(), threads)
    await service.start()
    if held:
        shares = {ShareNumber(number): [text_of(number)] for number in held}
        await service.store_shares([NewShares(storage_index=INDEX, secrets=LEASE, shares=shares)])
    async with running(service) as rig:
        await rig.client.connect()
        threads.count = 0
        found = await rig.client.find_shares(INDEX, [(0, 10), (1, asked)])
        assert threads.count <= most_calls
        assert {number: [bytes(piece) for piece in pieces] for number, pieces in found.items()} == {
            number: [text_of(number)[:10], text_of(number)[1 : 1 + asked]] for number in held
        }
