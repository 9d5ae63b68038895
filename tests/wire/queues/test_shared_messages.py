"""Stores and queries that share messages."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from twisted.internet.defer import CancelledError, Deferred

from grid.errors import GridError
from grid.limits import FIND_CALL_FILES, FIND_FILE_BYTES
from grid.ports import Find, LeaseSecrets, NewShares, ShareNumber, StorageIndex, StoreAnswer
from grid.wire.packed.find_messages import Found
from grid.wire.queues.shared_messages import ask_together, find_queue, store_by_steps
from tests.support.scripted_server import Script, ScriptedServer
from tests.support.virtual_time import VirtualRuntime

DONE = StoreAnswer(already=frozenset(), stored=True)
REFUSED = StoreAnswer(already=frozenset(), stored=False)


def new_shares(number: int, size: int = 10, count: int = 1) -> NewShares:
    shares = {ShareNumber(share): [bytes(size)] for share in range(count)}
    secrets = LeaseSecrets(renew=b"r" * 32, cancel=b"c" * 32)
    return NewShares(storage_index=StorageIndex(number.to_bytes(16, "big")), secrets=secrets, shares=shares)


def test_store_by_steps_when_all_is_well_stores() -> None:
    runtime = VirtualRuntime()
    server = ScriptedServer("s", runtime.clock)
    assert runtime.run(store_by_steps(server, new_shares(1, count=3))) == DONE
    assert server.shares[new_shares(1).storage_index] == dict.fromkeys(range(3), bytes(10))
    assert server.calls == ["allocate", "finish"]


def test_store_by_steps_when_a_share_is_held_or_refused_leaves_nothing_behind() -> None:
    runtime = VirtualRuntime()
    server = ScriptedServer("s", runtime.clock)
    runtime.run(store_by_steps(server, new_shares(1)))
    held = runtime.run(store_by_steps(server, new_shares(1, count=2)))
    assert held == StoreAnswer(already=frozenset({ShareNumber(0)}), stored=False)
    server.script = Script(full=True)
    assert runtime.run(store_by_steps(server, new_shares(2))) == REFUSED
    assert server.incoming == {}


def test_store_by_steps_when_a_step_fails_gives_the_upload_up() -> None:
    runtime = VirtualRuntime()
    server = ScriptedServer("s", runtime.clock, Script(broken=frozenset({1})))
    with pytest.raises(GridError):
        runtime.run(store_by_steps(server, new_shares(1)))
    runtime.settle()
    assert server.calls == ["allocate", "finish", "abort"]
    assert server.incoming == {}


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


def test_question_when_the_server_could_not_look_is_asked_alone_later() -> None:
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
