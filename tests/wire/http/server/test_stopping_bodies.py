"""Long bodies that stop midway, over real sockets: those of others get through."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from grid.errors import GridError
from grid.ports import ShareNumber, StorageIndex
from grid.wire.http.format.authority import CANCEL, RENEW, WRITE_ENABLER, pack_secrets
from tests.contract.storage_server import slot_secrets, vector
from tests.wire.http.rig import Rig, make_service, running
from tests.wire.http.server.test_listeners import request, wired

MIB = 2**20
SLOT = StorageIndex(bytes(range(16)))
SECRETS = {RENEW: b"r" * 32, CANCEL: b"c" * 32, WRITE_ENABLER: b"w" * 32}
ATTEMPTS = 3


def long_write(length: int, sent: int) -> bytes:
    """The beginning of a mutable write."""
    secrets = [(name.decode(), value.decode()) for name, value in pack_secrets(SECRETS)]
    head = request(f"mutable/{'a' * 26}/read-test-write", "POST", *secrets, ("Content-Length", str(length)))
    return head + bytes(sent)


async def is_written(rig: Rig, size: int) -> bool:
    for _ in range(ATTEMPTS):
        try:
            data = b"x" * size
            answer = await rig.client.test_and_write(SLOT, slot_secrets(), {ShareNumber(0): vector((0, data))}, [])
        except GridError:
            continue
        return answer.passed
    return False


@pytest.mark.parametrize(("count", "sent"), [(1, 0), (1, 60 * MIB), (70, MIB), (300, 0), (300, 300_000)])
async def test_write_among_bodies_that_stop_is_carried_out(count: int, sent: int) -> None:
    async with running(await make_service()) as rig, AsyncExitStack() as closing:
        for _ in range(count):
            wire = await closing.enter_async_context(wired(rig.port, tls=True))
            wire.transport.write(long_write(200 * MIB, sent))
        assert await is_written(rig, 2 * MIB)
