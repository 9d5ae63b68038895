"""A safe write, and late servers that could together hold a rival version: the plan alone, in virtual time.

[docs/decisions/0235-writers-meet-on-every-server.md, docs/decisions/0334-late-servers-and-rivals.md]
"""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from grid.engine.lateness import OTHER_WRITER_PATIENCE_S, WRITE_FLOOR_S, WRITE_HOPELESS_S
from grid.engine.server_memory import ServerMemory
from grid.errors import PeerGoneError
from grid.mutable.share.geometry import Geometry
from grid.mutable.share.keys import FileKeys
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.requests import ReadSlot, WriteSlot
from grid.mutable.write.goal import Goal
from grid.mutable.write.goal import tests_of_version as unchanged
from grid.mutable.write.write_job import ShareContents, WriteJob
from grid.mutable.write.write_plan import WRITE_KIND, WritePlan
from grid.ports import ServerId, ShareNumber, SlotAnswer
from tests.support.mutable_grid import MutableGrid

N = 10
ANSWER_S = 0.01


def prefix_of(k: int, seqnum: int, root: bytes) -> Prefix:
    geometry = Geometry.of_file(0, 100, k, N)
    return Prefix.of_version(geometry, seqnum=seqnum, root_hash=root * 32, iv=bytes(16))


def server(number: int) -> ServerId:
    return ServerId(f"server{number}")


class Write:
    """A plan that overwrites version 1 on ten servers with one share each."""

    def __init__(self, *, k: int = 3, happy: int = 0, memory: ServerMemory | None = None, **changes: Any) -> None:
        old = prefix_of(k, 1, b"o")
        job = WriteJob(
            prefix=prefix_of(k, 2, b"n"),
            contents=ShareContents(payload=lambda number: [(0, b"share")], share_bytes=5, new_length=None),
            base=old.order,
            happy=happy or max(7, k),
            settle=True,
        )
        goal: Goal = {(server(number), ShareNumber(number)): unchanged(old) for number in range(N)}
        cap = MutableGrid().create(b"")
        self.plan = WritePlan(evolve(job, **changes), goal, FileKeys.of_cap(cap), memory or ServerMemory())
        requests = self.plan.advance(0.0)
        self.sent = {request.server_id: request for request in requests if isinstance(request, WriteSlot)}
        assert len(self.sent) == N

    def take(self, number: int, now: float) -> None:
        """That server stores its share."""
        self.plan.answer(self.sent[server(number)], SlotAnswer(passed=True, data={}), now)

    def all_but(self, late: int) -> None:
        """All but the last servers answer, and the plan has its turn."""
        for number in range(N - late):
            self.take(number, ANSWER_S)
        self.plan.advance(ANSWER_S)

    def ends_at(self) -> float:
        """When the plan ends if nobody else says anything."""
        now = ANSWER_S
        while not self.plan.finished:
            wake_at = self.plan.wake_at()
            assert wake_at is not None and wake_at > now
            now = wake_at
            self.plan.advance(now)
        return now


@pytest.mark.parametrize(
    ("k", "late", "hidden"), [(3, 3, 0), (3, 2, 1), (3, 1, 2), (1, 1, 0), (2, 2, 0), (2, 1, 1), (3, 3, 1)]
)
def test_write_that_is_safe_when_late_servers_could_hold_a_rival_waits_for_them(k: int, late: int, hidden: int) -> None:
    write = Write(k=k, hidden=hidden)
    write.all_but(late)
    assert not write.plan.finished
    assert write.ends_at() == OTHER_WRITER_PATIENCE_S
    assert len(write.plan.result().locations) == N - late


@pytest.mark.parametrize(("k", "late", "hidden"), [(3, 2, 0), (3, 1, 1), (4, 3, 0), (3, 0, 5)])
def test_write_that_is_safe_when_late_servers_can_hold_no_rival_ends_when_they_are_late(
    k: int, late: int, hidden: int
) -> None:
    write = Write(k=k, hidden=hidden)
    write.all_but(late)
    assert write.plan.finished == (late == 0)
    assert write.ends_at() == (WRITE_FLOOR_S if late else ANSWER_S)


def test_write_that_is_safe_when_late_servers_answer_ends_with_them() -> None:
    write = Write()
    write.all_but(3)
    write.plan.advance(1.0)
    write.take(7, 1.1)
    write.plan.advance(1.1)
    assert write.plan.finished  # Two cannot hold three shares.
    assert len(write.plan.result().locations) == 8


def test_write_that_is_safe_when_late_servers_are_in_doubt_does_not_wait_for_them() -> None:
    memory = ServerMemory()
    for number in (7, 8, 9):
        memory.silent(server(number), WRITE_KIND, 0.0)
    assert all(memory.is_doubtful(server(number), WRITE_KIND) for number in (7, 8, 9))
    write = Write(memory=memory)
    write.all_but(3)
    assert write.ends_at() < OTHER_WRITER_PATIENCE_S / 2


@pytest.mark.parametrize(
    ("late", "hidden", "waits"), [(4, 0, False), (5, 0, True), (9, 0, True), (4, 9, False), (5, 9, True)]
)
def test_write_that_is_safe_waits_for_late_servers_until_most_have_taken_it(
    late: int, hidden: int, waits: bool
) -> None:
    """With nine hidden shares, most servers are still those of ten: a file has no more."""
    write = Write(k=1, happy=1, hidden=hidden)
    write.all_but(late)
    ends_at = write.ends_at()
    assert ends_at >= WRITE_HOPELESS_S if waits else ends_at == OTHER_WRITER_PATIENCE_S
    assert len(write.plan.result().locations) == N - late


def test_write_that_is_safe_when_most_servers_are_in_doubt_waits_for_them() -> None:
    memory = ServerMemory()
    for number in range(4, N):
        memory.silent(server(number), WRITE_KIND, 0.0)
    write = Write(k=1, happy=1, memory=memory)
    write.all_but(6)
    write.plan.advance(10.0)
    assert not write.plan.finished
    for number in (4, 5):
        write.take(number, 20.0)
    write.plan.advance(20.0)
    assert write.plan.finished


def test_write_that_is_safe_when_most_servers_refuse_it_ends_with_the_others() -> None:
    write = Write(k=1, happy=1)
    for number in range(4, N):
        write.plan.fail(write.sent[server(number)], PeerGoneError("the connection was refused"), ANSWER_S)
    write.all_but(6)
    assert write.plan.finished
    assert len(write.plan.result().locations) == 4


def test_write_of_a_new_file_waits_for_no_rival() -> None:
    write = Write(base=None)
    write.all_but(3)
    assert write.ends_at() == WRITE_FLOOR_S


def test_write_that_is_safe_when_a_late_server_shows_a_rival_demands_its_proof_and_does_not_end() -> None:
    write = Write()
    write.all_but(3)
    write.plan.advance(1.0)
    rival = prefix_of(3, 2, b"z").pack()
    request = write.sent[server(9)]
    write.plan.answer(request, SlotAnswer(passed=False, data={ShareNumber(9): [rival]}), 1.5)
    asked = write.plan.advance(1.5)
    assert [(type(each), each.server_id) for each in asked] == [(ReadSlot, server(9))]
    assert not write.plan.finished
