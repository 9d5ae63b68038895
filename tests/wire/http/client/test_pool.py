"""Choosing a connection for a request."""

from __future__ import annotations

import socket

import pytest

from grid.limits import HTTP_IDLE_DEADLINE_S
from grid.ports import LeaseSecrets, ShareNumber, ShareWrite, StorageIndex
from grid.wire.http.client import connection as connections
from grid.wire.http.client import pool as pools
from grid.wire.http.client.connection import IDLE_S, LONG_BYTES, LONG_IDLE_S, SHORTEST_S, ClientConnection
from grid.wire.http.client.destination import FRESH_S, LONG_FRESH_S
from grid.wire.http.client.pool import CONNECTIONS_PER_SERVER, Address
from grid.wire.http.client.spread import MUCH_SLOWER, Direction
from tests.wire.http.rig import Rig, make_service, running

INDEX = StorageIndex(bytes(range(16)))
LEASE = LeaseSecrets(renew=b"r" * 32, cancel=b"c" * 32)
SHARE = ShareNumber(1)
GREETING = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"]


async def acquire(rig: Rig, *, fresh: bool) -> tuple[ClientConnection, bool]:
    return await rig.pool.acquire(address(rig), "the server", fresh=fresh)


def address(rig: Rig) -> Address:
    return Address("127.0.0.1", rig.port, rig.nurl.spki_hash)


def release(rig: Rig, connection: ClientConnection, *, idle_s: float = 0.0) -> None:
    rig.pool.release(address(rig), connection)
    connection.idle_since -= idle_s


def test_connection_when_idle_is_fresh_for_less_time_than_it_is_kept() -> None:
    assert FRESH_S < IDLE_S < 60
    assert LONG_FRESH_S < LONG_IDLE_S < HTTP_IDLE_DEADLINE_S


@pytest.mark.parametrize("fresh", [False, True])
async def test_connection_when_idle_for_seconds_takes_a_request_that_cannot_be_repeated(fresh: bool) -> None:
    async with running(await make_service()) as rig:
        first, _ = await acquire(rig, fresh=fresh)
        release(rig, first, idle_s=FRESH_S / 2)
        assert await acquire(rig, fresh=fresh) == (first, True)


async def test_connection_when_idle_for_long_is_kept_for_requests_that_can_be_repeated() -> None:
    async with running(await make_service()) as rig:
        old, _ = await acquire(rig, fresh=True)
        release(rig, old, idle_s=FRESH_S + 1)
        new, was_used = await acquire(rig, fresh=True)
        assert new is not old and not was_used
        assert await acquire(rig, fresh=False) == (old, True)


async def test_connections_when_all_are_idle_for_long_give_way_to_a_fresh_one() -> None:
    async with running(await make_service()) as rig:
        held = [(await acquire(rig, fresh=True))[0] for _ in range(CONNECTIONS_PER_SERVER)]
        for connection in held:
            release(rig, connection, idle_s=FRESH_S + 1)
        new, was_used = await acquire(rig, fresh=True)
        assert new not in held and not was_used


@pytest.mark.parametrize(
    ("round_trip_s", "is_patient", "kept"), [(0.1, True, True), (0.1, False, False), (0.001, True, False)]
)
async def test_connection_when_idle_for_a_minute_is_fresh_if_the_line_is_long_and_the_server_patient(
    monkeypatch: pytest.MonkeyPatch, round_trip_s: float, is_patient: bool, kept: bool
) -> None:
    monkeypatch.setattr(connections, "shortest_round_trip_s", lambda _: round_trip_s)
    async with running(await make_service()) as rig:
        if is_patient:
            rig.pool.note_patience(address(rig), GREETING)
        first, _ = await acquire(rig, fresh=False)
        release(rig, first, idle_s=60)
        assert (await acquire(rig, fresh=True) == (first, True)) is kept


async def test_server_of_ours_is_known_to_be_patient_and_probed_when_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "shortest_round_trip_s", lambda _: 0.1)
    async with running(await make_service()) as rig:
        await rig.client.get_version()
        connection, was_used = await acquire(rig, fresh=True)
        assert was_used
        handle = connection.transport.transport.socket
        assert handle.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == IDLE_S


async def test_connection_when_many_are_idle_is_kept_for_the_shorter_time(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[float] = []
    monkeypatch.setattr(connections, "shortest_round_trip_s", lambda _: 0.1)
    monkeypatch.setattr(pools, "MOST_LONG_IDLE", 2)
    monkeypatch.setattr(ClientConnection, "keep_idle", lambda _, seconds: kept.append(seconds))
    async with running(await make_service()) as rig:
        rig.pool.note_patience(address(rig), GREETING)
        for connection in [(await acquire(rig, fresh=True))[0] for _ in range(3)]:
            release(rig, connection)
    assert kept == [LONG_IDLE_S, LONG_IDLE_S, IDLE_S]


def rated(rig: Rig, held: list[ClientConnection], rates: list[float | None]) -> None:
    """Release the connections, in order, as if their last long answers had come at these rates."""
    for connection, rate in zip(held, rates, strict=True):
        connection.rates = {} if rate is None else {Direction.DOWN: rate, Direction.UP: 1e6 / rate}
        release(rig, connection)


@pytest.mark.parametrize(
    ("round_trip_s", "most", "taken"),
    [(0.1, Direction.DOWN, 1), (0.1, Direction.UP, 0), (0.1, None, 2), (0.001, Direction.DOWN, 2)],
)
async def test_long_message_over_a_long_line_takes_the_connection_that_was_the_quickest_in_its_direction(
    monkeypatch: pytest.MonkeyPatch, round_trip_s: float, most: Direction | None, taken: int
) -> None:
    monkeypatch.setattr(connections, "shortest_round_trip_s", lambda _: round_trip_s)
    async with running(await make_service()) as rig:
        held = [(await acquire(rig, fresh=False))[0] for _ in range(3)]
        rated(rig, held, [2e5, 3e6, 2e6])
        assert await rig.pool.acquire(address(rig), "the server", most=most) == (held[taken], True)


async def test_connection_that_was_not_measured_comes_between_quick_ones_and_slow_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "shortest_round_trip_s", lambda _: 0.1)
    async with running(await make_service()) as rig:
        held = [(await acquire(rig, fresh=False))[0] for _ in range(4)]
        rated(rig, held, [1e6 / MUCH_SLOWER - 1, None, 1e6 / MUCH_SLOWER + 1, 1e6])
        order = [(await rig.pool.acquire(address(rig), "the server", most=Direction.DOWN))[0] for _ in held]
        assert order == [held[3], held[2], held[1], held[0]]


async def test_connection_measures_long_messages_only() -> None:
    async with running(await make_service()) as rig:
        connection, _ = await acquire(rig, fresh=False)
        release(rig, connection)
        upload = (await rig.client.allocate(INDEX, LEASE, frozenset([SHARE]), 2 * LONG_BYTES)).upload
        await upload.finish([ShareWrite(SHARE, 0, [bytes(2 * LONG_BYTES)])])
        assert connection.rates.keys() == {Direction.UP}
        await rig.client.read_shares(INDEX, {SHARE: [(0, LONG_BYTES - 100)]})
        assert connection.rates.keys() == {Direction.UP}
        await rig.client.read_shares(INDEX, {SHARE: [(0, 2 * LONG_BYTES)]})
        assert connection.rates.keys() == {Direction.UP, Direction.DOWN}
        assert all(0 < rate <= 3 * LONG_BYTES / SHORTEST_S for rate in connection.rates.values())
