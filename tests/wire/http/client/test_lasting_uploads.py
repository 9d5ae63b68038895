"""Uploads over HTTP that a later process resumes after the first one was stopped."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from attrs import evolve

from grid.ports import Buffer, LeaseSecrets, ShareNumber, ShareWrite, StorageIndex
from grid.wire.http.client.connection import ChooseReceiver, ClientConnection
from grid.wire.http.format.messages import ResponseHead
from tests.wire.http.rig import make_service, running

INDEX = StorageIndex(bytes(range(16)))
PLAIN = LeaseSecrets(renew=b"r" * 32, cancel=b"c" * 32)
LASTING = evolve(PLAIN, upload=b"u" * 32)
OTHER = evolve(PLAIN, upload=b"o" * 32)
NUMBERS = frozenset(map(ShareNumber, (0, 3)))
SIZE = 1_000_000
SHARES = {number: b"\0" + random.Random(number).randbytes(SIZE - 1) for number in NUMBERS}


def writes(begin: int, end: int) -> list[ShareWrite]:
    """The bytes of all shares in that range, in pieces."""
    middle = (begin + end) // 2
    return [ShareWrite(number, begin, [data[begin:middle], data[middle:end]]) for number, data in SHARES.items()]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each request."""
    counts: list[int] = []
    ask = ClientConnection.ask

    async def counted(connection: ClientConnection, pieces: Sequence[Buffer], choose: ChooseReceiver) -> ResponseHead:
        counts.append(sum(map(len, pieces)))
        return await ask(connection, pieces, choose)

    monkeypatch.setattr(ClientConnection, "ask", counted)
    return counts


@pytest.mark.parametrize("extensions", [True, False])
async def test_upload_when_started_again_sends_only_what_is_missing(extensions: bool, sent: list[int]) -> None:
    async with running(await make_service(), extensions=extensions) as rig:
        first = (await rig.client.allocate(INDEX, LASTING, NUMBERS, SIZE)).upload
        await first.write(writes(0, 400_000))
        await first.write(writes(500_000, 600_000))

        again = await rig.client.allocate(INDEX, LASTING, NUMBERS, SIZE)
        sent.clear()
        for begin in range(0, SIZE, 250_000):
            await again.upload.write(writes(begin, begin + 250_000))
        await again.upload.close(NUMBERS)

        assert (again.already, again.upload.share_numbers) == (frozenset(), NUMBERS)
        assert 0 <= sum(sent) - 2 * 500_000 < 10_000
        found = await rig.client.read_shares(INDEX, {number: [(0, SIZE)] for number in NUMBERS})
        assert {number: bytes(pieces[0]) for number, pieces in found.items()} == SHARES


@pytest.mark.parametrize("secrets", [PLAIN, OTHER])
async def test_upload_of_somebody_else_is_not_resumed(secrets: LeaseSecrets) -> None:
    async with running(await make_service()) as rig:
        first = (await rig.client.allocate(INDEX, LASTING, NUMBERS, SIZE)).upload
        await first.write(writes(0, 1000))

        again = await rig.client.allocate(INDEX, secrets, NUMBERS, SIZE)

        assert (again.already, again.upload.share_numbers) == (frozenset(), frozenset())
        await first.abort()


async def test_upload_that_was_given_up_starts_over() -> None:
    async with running(await make_service()) as rig:
        first = (await rig.client.allocate(INDEX, LASTING, NUMBERS, SIZE)).upload
        await first.write(writes(0, 600_000))
        await first.abort()

        again = (await rig.client.allocate(INDEX, LASTING, NUMBERS, SIZE)).upload
        await again.finish(writes(0, SIZE))

        found = await rig.client.read_shares(INDEX, {number: [(0, SIZE)] for number in NUMBERS})
        assert {number: bytes(pieces[0]) for number, pieces in found.items()} == SHARES
