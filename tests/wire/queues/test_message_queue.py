"""Calls that share messages: how many messages go out, with which calls, and what happens when one fails."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from twisted.internet.defer import CancelledError, Deferred

from grid.errors import PeerError, PeerGoneError
from grid.limits import STORE_CALL_BYTES, STORE_CALL_SHARES
from grid.ports import LeaseSecrets, NewShares, ShareNumber, StorageIndex, StoreAnswer
from grid.wire.queues.message_queue import MESSAGES_IN_FLIGHT
from grid.wire.queues.shared_messages import store_queue
from tests.support.virtual_time import VirtualRuntime

DONE = StoreAnswer(already=frozenset(), stored=True)


def new_shares(number: int, size: int = 10, count: int = 1) -> NewShares:
    shares = {ShareNumber(share): [bytes(size)] for share in range(count)}
    secrets = LeaseSecrets(renew=b"r" * 32, cancel=b"c" * 32)
    return NewShares(storage_index=StorageIndex(number.to_bytes(16, "big")), secrets=secrets, shares=shares)


class Rig:
    """A queue whose messages a test answers."""

    def __init__(self) -> None:
        self.runtime = VirtualRuntime()
        self.messages: list[tuple[Sequence[NewShares], Deferred[Sequence[StoreAnswer]]]] = []
        self.queue = store_queue(self._send, self.runtime.clock)

    async def _send(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        answer: Deferred[Sequence[StoreAnswer]] = Deferred()
        self.messages.append((stores, answer))
        return await answer

    def store(self, *stores: NewShares) -> Deferred[Sequence[StoreAnswer]]:
        return Deferred.fromCoroutine(self.queue.ask(stores))

    def turn(self) -> None:
        self.runtime.clock.task_clock.advance(0)

    def answer(self, index: int) -> None:
        stores, answer = self.messages[index]
        answer.callback([DONE for _ in stores])
        self.turn()

    @property
    def counts(self) -> list[int]:
        return [len(stores) for stores, _ in self.messages]


def test_stores_when_asked_for_in_one_turn_go_out_in_one_message() -> None:
    rig = Rig()
    stores = [rig.store(new_shares(number)) for number in range(5)]
    assert rig.counts == []
    rig.turn()
    assert rig.counts == [5]
    rig.answer(0)
    assert [store.result for store in stores] == [[DONE]] * 5


def test_stores_when_messages_are_on_their_way_wait_and_go_out_together() -> None:
    rig = Rig()
    stores = []
    for number in range(20):
        stores.append(rig.store(new_shares(number)))
        rig.turn()
    assert rig.counts == [1] * MESSAGES_IN_FLIGHT
    rig.answer(0)
    assert rig.counts == [1] * MESSAGES_IN_FLIGHT + [20 - MESSAGES_IN_FLIGHT]
    for index in range(1, len(rig.messages)):
        rig.answer(index)
    assert [store.result for store in stores] == [[DONE]] * 20


@pytest.mark.parametrize("large", [new_shares(0, STORE_CALL_BYTES // 2), new_shares(0, 1, STORE_CALL_SHARES // 2)])
def test_stores_when_they_do_not_fit_one_message_take_more(large: NewShares) -> None:
    rig = Rig()
    store = rig.store(large, large, large)
    rig.turn()
    assert rig.counts == [2, 1]
    rig.answer(1)
    rig.answer(0)
    assert store.result == [DONE] * 3


def test_stores_when_their_message_fails_fail_and_the_next_ones_go_out() -> None:
    rig = Rig()
    failing = [rig.store(new_shares(number)) for number in range(3)]
    rig.turn()
    rig.messages[0][1].errback(PeerGoneError("gone"))
    for store in failing:
        store.addErrback(lambda failure: failure.value)
        assert isinstance(store.result, PeerGoneError)
    later = rig.store(new_shares(9))
    rig.turn()
    rig.answer(1)
    assert later.result == [DONE]


def test_store_when_given_up_before_it_is_sent_is_not_sent() -> None:
    rig = Rig()
    given_up, kept = rig.store(new_shares(1)), rig.store(new_shares(2))
    given_up.addErrback(lambda failure: failure.trap(CancelledError))
    given_up.cancel()
    rig.turn()
    assert [new.storage_index for new in rig.messages[0][0]] == [new_shares(2).storage_index]
    assert not rig.queue.is_doubtful
    rig.answer(0)
    assert kept.result == [DONE]


def test_store_when_given_up_and_its_message_fails_leaves_no_doubt_behind() -> None:
    rig = Rig()
    given_up = rig.store(new_shares(1))
    rig.turn()
    other = rig.store(new_shares(2))
    rig.turn()
    for call in (given_up, other):
        call.cancel()
        call.addErrback(lambda _: None)
    assert rig.queue.is_doubtful
    rig.messages[0][1].errback(PeerGoneError("lost"))
    assert rig.queue.is_doubtful  # The other message may still be answered.
    rig.messages[1][1].errback(PeerGoneError("lost"))
    assert not rig.queue.is_doubtful


def test_store_when_given_up_after_it_is_sent_makes_the_server_doubtful_until_it_answers() -> None:
    rig = Rig()
    given_up, kept = rig.store(new_shares(1)), rig.store(new_shares(2))
    given_up.addErrback(lambda failure: failure.trap(CancelledError))
    rig.turn()
    given_up.cancel()
    assert rig.queue.is_doubtful
    rig.answer(0)
    assert kept.result == [DONE]
    assert not rig.queue.is_doubtful


def test_message_when_answered_with_too_few_fails_all_of_its_calls_and_counts_once() -> None:
    rig, errors = Rig(), list[object]()
    for number in range(3):
        rig.store(new_shares(number)).addBoth(lambda failure: errors.append(failure.type))
    rig.turn()
    rig.messages[0][1].callback([DONE])
    assert errors == [PeerError] * 3
    for number in range(MESSAGES_IN_FLIGHT + 1):
        rig.store(new_shares(10 + number, STORE_CALL_BYTES))
        rig.turn()
    assert len(rig.messages) == 1 + MESSAGES_IN_FLIGHT
