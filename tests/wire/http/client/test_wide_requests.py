"""Long messages over a long line, against our own server, over sockets."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import evolve
from twisted.internet import reactor
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater

from grid.errors import PeerGoneError
from grid.ports import Buffer, LeaseSecrets, NewShares, ShareNumber, ShareWrite, StorageIndex, StoreAnswer
from grid.wire.http.client import connection as connections
from grid.wire.http.client.connection import ChooseReceiver, ClientConnection
from grid.wire.http.client.pool import Address
from grid.wire.http.client.spread import MOST_PARTS, PART_BYTES, PIECE_BYTES, TURNS, Direction
from grid.wire.http.format.messages import ResponseHead
from grid.wire.http.format.routes import pack_path
from grid.wire.http.server import channel, client_time
from tests.wire.http.rig import Rig, make_service, running
from tests.wire.http.server.test_listeners import wired

INDEX = StorageIndex(bytes(range(16)))
LEASE = LeaseSecrets(renew=b"r" * 32, cancel=b"c" * 32)
DATA = bytes(range(250)) * 1400
PIECES = 20
LONG = bytes(range(256)) * (PIECES * PIECE_BYTES // 256)
SHARE = ShareNumber(3)
ALLOCATE = pack_path(INDEX, "immutable").rsplit(b"/", 1)[-1]


class Requests:
    """The paths of the requests, and how many were in progress at once."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.paths: list[bytes] = []
        self.most = 0
        self._under_way = 0
        ask = ClientConnection.ask

        async def counted(
            connection: ClientConnection,
            pieces: Sequence[Buffer],
            choose: ChooseReceiver,
        ) -> ResponseHead:
            self.paths.append(bytes(pieces[0]).split(b" ")[1].rsplit(b"/", 1)[-1])
            self._under_way += 1
            self.most = max(self.most, self._under_way)
            try:
                return await ask(connection, pieces, choose)
            finally:
                self._under_way -= 1

        patch.setattr(ClientConnection, "ask", counted)

    def take(self) -> list[bytes]:
        taken, self.paths = self.paths, []
        return taken


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    return Requests(monkeypatch)


def make_lines(patch: pytest.MonkeyPatch, round_trip_s: float | None) -> None:
    patch.setattr(connections, "shortest_round_trip_s", lambda _: round_trip_s)


async def open_connections(rig: Rig, count: int = MOST_PARTS) -> None:
    """Open that many idle connections, by default as many as a long message uses."""
    held = [(await rig.pool.acquire(address(rig), "the server"))[0] for _ in range(count)]
    for connection in held:
        rig.pool.release(address(rig), connection)


def address(rig: Rig) -> Address:
    return Address("127.0.0.1", rig.port, rig.nurl.spki_hash)


async def test_block_when_the_line_is_long_comes_over_four_connections(
    monkeypatch: pytest.MonkeyPatch, requests: Requests
) -> None:
    make_lines(monkeypatch, 0.1)
    async with running(await make_service()) as rig:
        upload = (await rig.client.allocate(INDEX, LEASE, frozenset([SHARE]), len(DATA))).upload
        await open_connections(rig)
        requests.take()
        await upload.finish([ShareWrite(SHARE, 0, [DATA[:1000], DATA[1000:]])])
        assert requests.take() == [b"grid-write"] * MOST_PARTS
        found = await rig.client.find_shares(INDEX, [(0, 100), (0, len(DATA)), (len(DATA) - 3, 100)])
        assert requests.take() == [b"grid-find"] * MOST_PARTS
        assert requests.most == MOST_PARTS
        assert {number: [bytes(piece) for piece in pieces] for number, pieces in found.items()} == {
            SHARE: [DATA[:100], DATA, DATA[-3:]]
        }
        # The windows are open now: the next message needs but one connection.
        read = await rig.client.read_shares(INDEX, {SHARE: [(0, len(DATA))]})
        assert requests.take() == [b"grid-read"]
        assert bytes(read[SHARE][0]) == DATA


async def test_block_when_only_one_connection_is_open_waits_for_no_other(
    monkeypatch: pytest.MonkeyPatch, requests: Requests
) -> None:
    make_lines(monkeypatch, 0.1)
    async with running(await make_service()) as rig:
        upload = (await rig.client.allocate(INDEX, LEASE, frozenset([SHARE]), len(DATA))).upload
        requests.take()
        await upload.finish([ShareWrite(SHARE, 0, [DATA])])
        assert requests.paths.count(b"grid-write") == 1
        # The connections that it lacked are being opened beside it, for the next one.
        while rig.pool.part_count(address(rig), Direction.DOWN, len(DATA)) < MOST_PARTS:
            await deferLater(reactor, 0.01)
        assert len(rig.connection_limit) == MOST_PARTS
        assert sorted(requests.take()) == [b"grid-write", *[b"version"] * (MOST_PARTS - 1)]
        await rig.client.find_shares(INDEX, [(0, len(DATA))])
        assert requests.take() == [b"grid-find"] * MOST_PARTS


async def test_connections_that_are_opened_for_later_stay_when_the_server_has_waited_for_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_lines(monkeypatch, 0.1)
    monkeypatch.setattr(channel, "HTTP_HEAD_DEADLINE_S", 1.0)
    monkeypatch.setattr(client_time, "TICK_S", 0.02)
    async with running(await make_service()) as rig:
        await rig.client.get_version()
        while rig.pool.part_count(address(rig), Direction.DOWN, len(DATA)) < MOST_PARTS:
            await deferLater(reactor, 0.01)
        async with wired(rig.port, tls=True) as silent:
            await silent.lost  # By now, the server has closed all connections that have shown no request.
        assert rig.pool.part_count(address(rig), Direction.DOWN, len(DATA)) == MOST_PARTS


async def test_messages_of_many_pieces_leave_connections_for_short_ones(
    monkeypatch: pytest.MonkeyPatch, requests: Requests
) -> None:
    make_lines(monkeypatch, 0.1)
    async with running(await make_service()) as rig:
        upload = (await rig.client.allocate(INDEX, LEASE, frozenset([SHARE]), len(LONG))).upload
        requests.take()
        await upload.finish([ShareWrite(SHARE, 0, [LONG[:1000], LONG[1000:]])])
        assert requests.take() == [b"grid-write"] * PIECES and requests.most == TURNS[Direction.UP]
        reads = [rig.client.read_shares(INDEX, {SHARE: [(at, len(LONG) // 2)]}) for at in (0, len(LONG) // 2)]
        first, second = await gatherResults([Deferred.fromCoroutine(each) for each in reads])
        assert requests.take() == [b"grid-read"] * PIECES and requests.most == TURNS[Direction.DOWN]
        assert bytes(first[SHARE][0]) + bytes(second[SHARE][0]) == LONG
        found = await rig.client.find_shares(INDEX, [(3, len(LONG))])
        assert requests.take() == [b"grid-find"] * PIECES and bytes(found[SHARE][0]) == LONG[3:]


async def test_connection_when_it_has_become_slow_holds_up_one_piece_only(
    monkeypatch: pytest.MonkeyPatch, requests: Requests
) -> None:
    make_lines(monkeypatch, 0.1)
    ask = ClientConnection.ask
    slow: list[ClientConnection] = []
    others: list[ClientConnection] = []
    others_done: Deferred[None] = Deferred()

    async def slow_on_one(
        connection: ClientConnection, pieces: Sequence[Buffer], choose: ChooseReceiver
    ) -> ResponseHead:
        is_piece = b"grid-write" in bytes(pieces[0])
        if is_piece and not slow:
            slow.append(connection)
            await others_done
        elif is_piece:
            others.append(connection)
        answer = await ask(connection, pieces, choose)
        if is_piece and len(others) == PIECES - 1 and not others_done.called:
            others_done.callback(None)
        return answer

    async with running(await make_service()) as rig:
        upload = (await rig.client.allocate(INDEX, LEASE, frozenset([SHARE]), len(LONG))).upload
        monkeypatch.setattr(ClientConnection, "ask", slow_on_one)
        await upload.finish([ShareWrite(SHARE, 0, [LONG])])
        assert slow[0] not in others and len(others) == PIECES - 1
        read = await rig.client.read_shares(INDEX, {SHARE: [(0, len(LONG))]})
        assert bytes(read[SHARE][0]) == LONG


async def test_pieces_that_wait_when_one_has_failed_are_not_sent(
    monkeypatch: pytest.MonkeyPatch, requests: Requests
) -> None:
    make_lines(monkeypatch, 0.1)
    async with running(await make_service()) as rig:
        upload = (await rig.client.allocate(INDEX, LEASE, frozenset([SHARE]), len(LONG))).upload
        requests.take()

        async def refuse(*_: object, **__: object) -> ResponseHead:
            requests.paths.append(b"refused")
            raise PeerGoneError("gone")

        with monkeypatch.context() as patch:
            patch.setattr(ClientConnection, "ask", refuse)
            with pytest.raises(PeerGoneError):
                await upload.finish([ShareWrite(SHARE, 0, [LONG])])
        assert len(requests.take()) <= TURNS[Direction.UP]
        await upload.abort()


async def test_writes_when_the_line_is_short_open_no_more_connections_than_they_use(
    monkeypatch: pytest.MonkeyPatch, requests: Requests
) -> None:
    make_lines(monkeypatch, 0.001)
    async with running(await make_service()) as rig:
        upload = (await rig.client.allocate(INDEX, LEASE, frozenset([SHARE]), 2 * len(DATA))).upload
        requests.take()
        writes = [upload.write([ShareWrite(SHARE, start, [DATA])]) for start in (0, len(DATA))]
        await gatherResults([Deferred.fromCoroutine(each) for each in writes])
        assert requests.take() == [b"grid-write"] * 2 and requests.most == 2
        assert len(rig.connection_limit) == 2
        await upload.close([SHARE])


def new_shares() -> NewShares:
    return NewShares(storage_index=INDEX, secrets=LEASE, shares={SHARE: [DATA]})


async def test_store_when_the_line_is_long_asks_for_room_and_goes_over_four_connections(
    monkeypatch: pytest.MonkeyPatch, requests: Requests
) -> None:
    make_lines(monkeypatch, 0.1)
    async with running(await make_service()) as rig:
        await rig.client.connect()
        assert not rig.client.asks_for_room(len(DATA))
        await open_connections(rig, MOST_PARTS + 1)  # One may not be idle yet when the answer to the question has come.
        assert rig.client.asks_for_room(len(DATA)) and not rig.client.asks_for_room(PART_BYTES)
        requests.take()
        assert await rig.client.store_shares([new_shares()]) == [StoreAnswer(already=frozenset(), stored=True)]
        assert requests.take() == [ALLOCATE, *[b"grid-write"] * MOST_PARTS]
        read = await rig.client.read_shares(INDEX, {SHARE: [(0, len(DATA))]})
        assert bytes(read[SHARE][0]) == DATA
        # The windows are open now: one message is quicker.
        assert not rig.client.asks_for_room(len(DATA))
        requests.take()
        other = evolve(new_shares(), storage_index=StorageIndex(bytes(16)))
        assert await rig.client.store_shares([other]) == [StoreAnswer(already=frozenset(), stored=True)]
        assert requests.take() == [b"grid-store"]


async def test_store_when_the_share_is_held_over_a_long_line_sends_none_of_it(
    monkeypatch: pytest.MonkeyPatch, requests: Requests
) -> None:
    make_lines(monkeypatch, None)
    async with running(await make_service()) as rig:
        await rig.client.store_shares([new_shares()])
    make_lines(monkeypatch, 0.1)
    async with running(rig.service) as again:
        await again.client.connect()
        await open_connections(again)
        requests.take()
        (answer,) = await again.client.store_shares([new_shares()])
        assert answer == StoreAnswer(already=frozenset([SHARE]), stored=False)
        assert requests.take() == [ALLOCATE]


async def test_read_when_the_line_is_long_is_put_together_from_its_parts(
    monkeypatch: pytest.MonkeyPatch, requests: Requests
) -> None:
    make_lines(monkeypatch, 0.1)
    async with running(await make_service()) as rig:
        other = ShareNumber(7)
        upload = (await rig.client.allocate(INDEX, LEASE, frozenset([SHARE, other]), len(DATA))).upload
        await upload.finish([ShareWrite(number, 0, [DATA]) for number in (SHARE, other)])
        await open_connections(rig)
        requests.take()
        wants = {SHARE: [(5, 200_000)], ShareNumber(9): [(0, 100_000)], other: [(len(DATA) - 9, 100), (0, 99_000)]}
        read = await rig.client.read_shares(INDEX, wants)
        assert requests.take() == [b"grid-read"] * MOST_PARTS
        assert {number: [bytes(piece) for piece in pieces] for number, pieces in read.items()} == {
            SHARE: [DATA[5:200_005]],
            other: [DATA[-9:], DATA[:99_000]],
        }


async def test_find_when_nothing_is_held_over_a_long_line_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    make_lines(monkeypatch, 0.1)
    async with running(await make_service()) as rig:
        assert not await rig.client.find_shares(INDEX, [(0, 400_000)])


@pytest.mark.parametrize("round_trip_s", [None, 0.001])
async def test_block_when_the_line_is_short_comes_in_one_message(
    monkeypatch: pytest.MonkeyPatch, requests: Requests, round_trip_s: float | None
) -> None:
    make_lines(monkeypatch, round_trip_s)
    async with running(await make_service()) as rig:
        upload = (await rig.client.allocate(INDEX, LEASE, frozenset([SHARE]), len(DATA))).upload
        requests.take()
        await upload.finish([ShareWrite(SHARE, 0, [DATA])])
        await rig.client.find_shares(INDEX, [(0, len(DATA))])
        assert requests.take() == [b"grid-write", b"grid-find"]
