"""The HTTP client against our own server, over sockets."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from twisted.internet.defer import Deferred, gatherResults

from grid.limits import FIND_FILE_BYTES
from grid.ports import Buffer, LeaseSecrets, ShareNumber, ShareWrite, SlotSecrets, StorageIndex, TestWrite
from grid.wire.http.client.connection import ChooseReceiver, ClientConnection
from grid.wire.http.format.messages import ResponseHead
from tests.wire.http.rig import make_service, running

INDEX, OTHER, NEITHER = (StorageIndex(bytes(range(first, first + 16))) for first in (0, 100, 200))
LEASE = LeaseSecrets(renew=b"r" * 32, cancel=b"c" * 32)
SLOT = SlotSecrets(write_enabler=b"w" * 32, lease=LEASE)


def numbers(*items: int) -> frozenset[ShareNumber]:
    return frozenset(map(ShareNumber, items))


async def test_shares_when_written_and_closed_then_read_back() -> None:
    async with running(await make_service()) as rig:
        server = rig.client
        allocation = await server.allocate(INDEX, LEASE, numbers(0, 3), 1000)
        assert allocation.upload.share_numbers == numbers(0, 3)
        data = bytes(range(250)) * 4
        await allocation.upload.write(
            [ShareWrite(ShareNumber(0), 0, [data[:500]]), ShareWrite(ShareNumber(3), 0, [data[:100], data[100:]])]
        )
        assert not await server.find_shares(INDEX)
        await allocation.upload.write([ShareWrite(ShareNumber(0), 500, [memoryview(data)[500:]])])
        await allocation.upload.close(numbers(0, 3))
        found = await server.find_shares(INDEX, [(0, 10), (990, 100)])
        assert {n: [bytes(p) for p in pieces] for n, pieces in found.items()} == {
            0: [data[:10], data[990:]],
            3: [data[:10], data[990:]],
        }
        read = await server.read_shares(INDEX, {ShareNumber(0): [(5, 20)], ShareNumber(9): [(0, 1)]})
        assert {n: [bytes(p) for p in pieces] for n, pieces in read.items()} == {0: [data[5:25]]}


async def test_slot_when_written_then_read_back_and_tested() -> None:
    async with running(await make_service()) as rig:
        server = rig.client
        answer = await server.test_and_write(INDEX, SLOT, {ShareNumber(1): TestWrite(writes=[(0, b"hello")])})
        assert answer.passed
        found = await server.read_slot(INDEX, frozenset(), [(0, 3), (3, 10)])
        assert {n: [bytes(p) for p in pieces] for n, pieces in found.items()} == {1: [b"hel", b"lo"]}
        answer = await server.test_and_write(
            INDEX, SLOT, {ShareNumber(1): TestWrite(tests=[(0, 1, b"x")], writes=[(0, b"J")])}, [(0, 5)]
        )
        assert not answer.passed and bytes(answer.data[ShareNumber(1)][0]) == b"hello"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes in bytes of all requests from now on."""
    sizes: list[int] = []
    ask = ClientConnection.ask

    async def counted(connection: ClientConnection, pieces: Sequence[Buffer], choose: ChooseReceiver) -> ResponseHead:
        sizes.append(sum(map(len, pieces)))
        return await ask(connection, pieces, choose)

    monkeypatch.setattr(ClientConnection, "ask", counted)
    return sizes


async def test_slots_when_read_at_the_same_time_share_a_request(asked: list[int]) -> None:
    async with running(await make_service()) as rig:
        server = rig.client
        for index in (INDEX, OTHER):
            await server.test_and_write(index, SLOT, {ShareNumber(1): TestWrite(writes=[(0, index)])})
        asked.clear()
        reading = [
            Deferred.fromCoroutine(server.read_slot(index, frozenset(), [(0, 4), (12, 9)]))
            for index in (INDEX, OTHER, NEITHER)
        ]
        found = [
            {n: [bytes(p) for p in pieces] for n, pieces in answer.items()} for answer in await gatherResults(reading)
        ]
        assert found == [{1: [INDEX[:4], INDEX[12:]]}, {1: [OTHER[:4], OTHER[12:]]}, {}]
        assert len(asked) == 1


@pytest.mark.parametrize(("named", "size"), [(frozenset({ShareNumber(1)}), 4), (frozenset(), FIND_FILE_BYTES + 1)])
async def test_slots_when_some_shares_or_many_bytes_are_read_have_requests_of_their_own(
    asked: list[int], named: frozenset[ShareNumber], size: int
) -> None:
    async with running(await make_service()) as rig:
        server = rig.client
        await server.test_and_write(INDEX, SLOT, {ShareNumber(n): TestWrite(writes=[(0, b"data")]) for n in range(2)})
        asked.clear()
        reading = [Deferred.fromCoroutine(server.read_slot(INDEX, named, [(0, size)])) for _ in range(2)]
        for answer in await gatherResults(reading):
            assert answer.keys() == (named or numbers(0, 1))
        assert len(asked) == 2


async def test_upload_when_finished_with_its_last_writes_takes_one_request(asked: list[int]) -> None:
    async with running(await make_service()) as rig:
        data = bytes(range(250)) * 4000
        upload = (await rig.client.allocate(INDEX, LEASE, numbers(0, 3), len(data))).upload
        asked.clear()
        await upload.finish([ShareWrite(ShareNumber(number), 0, [data]) for number in (0, 3)])
        assert len(asked) == 1 and asked[0] > 2 * len(data)
        found = await rig.client.find_shares(INDEX, [(len(data) - 3, 100)])
        assert {n: [bytes(p) for p in pieces] for n, pieces in found.items()} == {0: [data[-3:]], 3: [data[-3:]]}
