"""Bodies that arrive and wait for their handlers: their memory is bounded and released."""

from __future__ import annotations

from pathlib import Path

import pytest
from twisted.internet.defer import Deferred

from grid.errors import GridError
from grid.gateway.http.body import MAX_WAITING, Body, gone
from grid.gateway.shared.spool import LEAST_BATCH, Spool, SpoolFolder
from grid.wire.connections.body_rate import BodyRate
from tests.support.virtual_time import VirtualRuntime

READ = 2**16
"""Bytes that come of a socket at once."""

SHARED = 2**21


def unused() -> Spool:
    raise AssertionError("nothing is spooled here")


class Sender:
    """A client that sends as fast as it is listened to."""

    def __init__(self, folder: SpoolFolder) -> None:
        self.is_read = True
        clock = VirtualRuntime().clock
        rate = BodyRate(clock, 1)
        self.body = Body(None, "", pause=self._pause, resume=self._resume, make_spool=unused, memory=folder, rate=rate)

    def _pause(self) -> None:
        self.is_read = False

    def _resume(self) -> None:
        self.is_read = True

    def send(self, most: int = 2**30) -> int:
        size = 0
        while self.is_read and size < most:
            self.body.arrive(bytes(READ))
            size += READ
        return size


def test_bodies_that_nobody_reads_hold_little_each_once_they_are_many() -> None:
    folder = SpoolFolder(Path("/nowhere"), SHARED)
    senders = [Sender(folder) for _ in range(300)]
    assert senders[0].send() > MAX_WAITING // 2
    assert sum(sender.send() for sender in senders[1:]) < SHARED + MAX_WAITING + 300 * READ
    assert folder.held_size < SHARED + MAX_WAITING + 300 * max(READ, LEAST_BATCH)
    for sender in senders:
        sender.body.close()
    assert folder.held_size == 0


@pytest.mark.parametrize("is_crowded", [False, True])
async def test_body_when_it_is_consumed_is_read_on_and_releases_its_memory(is_crowded: bool) -> None:
    folder = SpoolFolder(Path("/nowhere"), 0 if is_crowded else SHARED)
    sender = Sender(folder)
    sent, taken = sender.send(), 0
    chunks = sender.body.chunks()
    while not sender.is_read:
        taken += len(await anext(chunks))
    sent += sender.send(READ)
    sender.body.end()
    taken += sum([len(chunk) async for chunk in chunks])
    assert taken == sent
    assert folder.held_size == 0


def test_body_when_its_request_is_over_ends_as_requested_and_holds_nothing_more() -> None:
    folder = SpoolFolder(Path("/nowhere"), SHARED)
    sender = Sender(folder)
    sender.send(READ)
    sender.body.fail(gone())
    sender.body.close()
    sender.body.arrive(bytes(READ))
    outcome: list[object] = []
    reading = Deferred.fromCoroutine(sender.body.read_all(2**30))
    reading.addCallbacks(outcome.append, lambda failure: outcome.append(failure.value))
    assert isinstance(outcome[0], GridError)
    assert folder.held_size == 0
