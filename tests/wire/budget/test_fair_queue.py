"""The order of waiting requests."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from grid.wire.budget.fair_queue import MOST_REMEMBERED, FairQueue


def drained(queue: FairQueue[tuple[str, int]]) -> list[tuple[str, int]]:
    """All items, each served in its turn."""
    order = []
    while (item := queue.first()) is not None:
        queue.remove(item[0], item)
        queue.serve(item[0])
        order.append(item)
    return order


@given(st.lists(st.sampled_from("abc")))
def test_every_peer_has_its_turn_before_any_has_a_second_one_more(peers: list[str]) -> None:
    queue: FairQueue[tuple[str, int]] = FairQueue()
    for position, peer in enumerate(peers):
        queue.append(peer, (peer, position))
    assert len(queue) == len(peers)
    order = drained(queue)
    assert sorted(order, key=lambda item: item[1]) == list(queue) + [(peer, at) for at, peer in enumerate(peers)]
    for peer in "abc":
        own = [item for item in order if item[0] == peer]
        assert own == sorted(own)
        for first, second in pairwise(own):
            between = [item[0] for item in order[order.index(first) + 1 : order.index(second)]]
            assert len(between) == len(set(between))


def test_peer_that_was_just_served_waits_for_one_that_comes_later() -> None:
    queue: FairQueue[tuple[str, int]] = FairQueue()
    queue.serve("a")
    queue.append("a", ("a", 1))
    queue.append("b", ("b", 2))
    assert drained(queue) == [("b", 2), ("a", 1)]


def test_queue_remembers_few_peers() -> None:
    queue: FairQueue[str] = FairQueue()
    for peer in range(2 * MOST_REMEMBERED):
        queue.serve(peer)
    assert len(queue._served) == MOST_REMEMBERED
