"""Choosing a connection for a request."""

from __future__ import annotations

import pytest

from grid.wire.http.client.connection import IDLE_S, ClientConnection
from grid.wire.http.client.pool import CONNECTIONS_PER_SERVER, FRESH_S, Address
from tests.wire.http.rig import Rig, make_service, running


async def acquire(rig: Rig, *, fresh: bool) -> tuple[ClientConnection, bool]:
    return await rig.pool.acquire(address(rig), "the server", fresh=fresh)


def address(rig: Rig) -> Address:
    return Address("127.0.0.1", rig.port, rig.nurl.spki_hash)


def release(rig: Rig, connection: ClientConnection, *, idle_s: float = 0.0) -> None:
    rig.pool.release(address(rig), connection)
    connection.idle_since -= idle_s


def test_connection_when_idle_is_fresh_for_less_time_than_it_is_kept() -> None:
    assert FRESH_S < IDLE_S < 60


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
