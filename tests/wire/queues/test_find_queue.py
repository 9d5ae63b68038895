"""Which questions share messages."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import CancelledError, Deferred

from grid.limits import FIND_CALL_FILES, FIND_FILE_BYTES
from grid.ports import Find, StorageIndex
from grid.wire.packed.finds import Found
from grid.wire.queues.find_queue import ask_together, find_queue
from tests.support.virtual_time import VirtualRuntime


class Rig:
    """A queue whose messages a test answers."""

    def __init__(self) -> None:
        self.runtime = VirtualRuntime()
        self.messages: list[tuple[Sequence[Find], Deferred[Sequence[Found | None]]]] = []
        self.queue = find_queue(self._send, self.runtime.clock)

    async def _send(self, finds: Sequence[Find]) -> Sequence[Found | None]:
        answer: Deferred[Sequence[Found | None]] = Deferred()
        self.messages.append((finds, answer))
        return await answer

    def ask(self, size: int = 10) -> Deferred[Found | None]:
        asked = Deferred.fromCoroutine(ask_together(Find(StorageIndex(bytes(16)), [(0, size)]), self.queue))
        asked.addErrback(lambda failure: failure.trap(CancelledError))
        return asked

    def turn(self) -> None:
        self.runtime.clock.task_clock.advance(0)

    @property
    def counts(self) -> list[int]:
        return [len(finds) for finds, _ in self.messages]


def test_questions_when_asked_in_one_turn_share_a_message_up_to_its_limit() -> None:
    rig = Rig()
    asked = [rig.ask() for _ in range(FIND_CALL_FILES + 1)]
    rig.turn()
    assert rig.counts == [FIND_CALL_FILES, 1]
    for finds, answer in rig.messages:
        answer.callback([{} for _ in finds])
    assert [each.result for each in asked] == [{}] * (FIND_CALL_FILES + 1)


def test_question_when_it_asks_for_much_goes_alone() -> None:
    rig = Rig()
    assert rig.ask(FIND_FILE_BYTES + 1).result is None
    rig.ask(FIND_FILE_BYTES)
    rig.turn()
    assert rig.counts == [1]


def test_question_when_the_server_could_not_look_is_to_be_asked_alone() -> None:
    rig = Rig()
    good, bad = rig.ask(), rig.ask()
    rig.turn()
    rig.messages[0][1].callback([{}, None])
    assert (good.result, bad.result) == ({}, None)


def test_questions_when_somebody_gave_up_waiting_go_alone_until_an_answer_has_come() -> None:
    rig = Rig()
    first, second = rig.ask(), rig.ask()
    rig.turn()
    first.cancel()
    assert rig.ask().result is None
    rig.messages[0][1].callback([{}, {}])
    assert second.result == {}
    rig.ask()
    rig.turn()
    assert rig.counts == [2, 1]
