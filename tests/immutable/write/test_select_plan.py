"""Placing shares: rounds, refusals, silence, what counts and what does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from grid.engine.requests import ServerRequest
from grid.errors import NotHappyError, PeerError
from grid.immutable.share.requests import Allocate, AskVersion, FindShares
from grid.immutable.write.select_plan import ANSWER_LIMIT_S, GRACE_FLOOR_S, SelectPlan
from grid.immutable.write.sharemap import happiness_message, make_sharemap
from grid.ports import Allocation, ServerId, ServerVersion, ShareNumber, ShareWrite


class Granted:
    """An upload that nobody writes to."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self.share_numbers = frozenset(ShareNumber(number) for number in numbers)

    async def write(self, writes: Iterable[ShareWrite]) -> None:
        raise AssertionError

    async def finish(self, writes: Iterable[ShareWrite]) -> None:
        raise AssertionError

    async def close(self, share_numbers: Iterable[ShareNumber]) -> None:
        raise AssertionError

    async def abort(self, share_numbers: Iterable[ShareNumber] | None = None) -> None:
        raise AssertionError


class Table:
    """Plays the servers for one plan by hand."""

    def __init__(self, count: int, **options: object) -> None:
        self.ids = [ServerId(f"s{index}") for index in range(count)]
        self.plan = SelectPlan(self.ids, share_size=1000, **options)  # type: ignore[arg-type]
        self.open: list[ServerRequest] = []
        self.now = 0.0
        self.step()

    def step(self, now: float | None = None) -> list[ServerRequest]:
        self.now = self.now if now is None else now
        fresh = [request for request in self.plan.advance(self.now) if isinstance(request, ServerRequest)]
        self.open += fresh
        gone = set(self.plan.withdrawn())
        self.open = [request for request in self.open if request not in gone]
        return fresh

    def know(self, index: int, held: Iterable[int] = (), room: int = 10**6) -> None:
        """One server reports its version and its shares."""
        for request in self.of(index):
            self.open.remove(request)
            if isinstance(request, AskVersion):
                version = ServerVersion(
                    application="x", maximum_immutable_share_size=room, maximum_mutable_share_size=1, available_space=1
                )
                self.plan.answer(request, version, self.now)
            elif isinstance(request, FindShares):
                self.plan.answer(request, {ShareNumber(number): [] for number in held}, self.now)

    def of(self, index: int) -> list[ServerRequest]:
        return [request for request in self.open if request.server_id == self.ids[index]]

    def grant(self, index: int, refused: Iterable[int] = (), already: Iterable[int] = ()) -> frozenset[ShareNumber]:
        """One server answers its allocation; returns the request."""
        (request,) = self.of(index)
        assert isinstance(request, Allocate)
        self.open.remove(request)
        taken = request.wanted - frozenset(refused) - frozenset(already)
        answer = Allocation(already=frozenset(ShareNumber(n) for n in already), upload=Granted(taken))
        self.plan.answer(request, answer, self.now)
        return request.wanted

    def placed(self) -> Mapping[ServerId, frozenset[ShareNumber]]:
        return self.plan.result().placed


def test_select_when_all_take_what_they_are_given_is_done_in_one_round() -> None:
    table = Table(4, k=2, n=4, happy=4)
    for index in range(4):
        table.know(index)
    assert {len(request.wanted) for request in table.step() if isinstance(request, Allocate)} == {1}
    for index in range(4):
        table.grant(index)
    table.step()
    assert table.plan.finished
    assert table.plan.result().happiness == 4
    assert sum(len(shares) for shares in table.placed().values()) == 4


def test_select_when_a_server_refuses_places_its_share_elsewhere_and_asks_it_no_more() -> None:
    table = Table(3, k=1, n=3, happy=2)
    for index in range(3):
        table.know(index)
    table.step()
    refused = table.grant(0, refused=range(3))
    table.grant(1)
    table.grant(2)
    (again,) = table.step()
    assert isinstance(again, Allocate) and again.wanted == refused and again.server_id != "s0"
    table.grant(table.ids.index(again.server_id))
    table.step()
    assert table.plan.finished
    assert ServerId("s0") not in table.placed()
    assert {share for shares in table.placed().values() for share in shares} == {0, 1, 2}


def test_select_when_nobody_has_room_ends_in_as_many_rounds_as_there_are_servers_at_most() -> None:
    table = Table(3, k=1, n=3, happy=3)
    for index in range(3):
        table.know(index)
    rounds = 0
    while not table.plan.finished:
        for request in table.step():
            table.grant(table.ids.index(request.server_id), refused=range(3))
        rounds += 1
        assert rounds <= 5
    with pytest.raises(NotHappyError, match="only 0 server"):
        table.plan.result()


def test_select_when_a_share_is_taken_twice_counts_it_on_one_server() -> None:
    table = Table(3, k=1, n=4, happy=3)
    table.know(0)
    table.know(1)
    table.know(2, room=0)
    table.step()
    first = table.grant(0, refused=[3, 2])
    table.grant(1)
    while not table.plan.finished:
        for request in table.step():
            table.grant(table.ids.index(request.server_id))
    assert first
    with pytest.raises(NotHappyError):
        table.plan.result()
    numbers = [share for candidate in table.plan._candidates.values() for share in candidate.allocated]
    assert sorted(numbers) == sorted(set(numbers))


def test_select_when_a_server_is_silent_leaves_it_behind_soon_if_the_others_suffice() -> None:
    table = Table(4, k=1, n=4, happy=3)
    for index in range(3):
        table.know(index)
    assert table.step() == []
    assert table.plan.wake_at() == GRACE_FLOOR_S
    asked = table.step(GRACE_FLOOR_S)
    assert {request.server_id for request in asked} == {"s0", "s1", "s2"}
    assert not table.of(3)


def test_select_when_a_server_is_needed_waits_for_it_to_the_limit() -> None:
    table = Table(4, k=1, n=4, happy=4)
    for index in range(3):
        table.know(index)
    table.step()
    assert table.plan.wake_at() == ANSWER_LIMIT_S
    table.step(ANSWER_LIMIT_S)
    while not table.plan.finished:
        for index in range(3):
            if table.of(index):
                table.grant(index)
        table.step()
    with pytest.raises(NotHappyError):
        table.plan.result()


def test_select_when_a_server_goes_silent_after_it_allocated_counts_nothing_on_it() -> None:
    table = Table(3, k=1, n=6, happy=2)
    for index in range(3):
        table.know(index)
    table.step()
    table.grant(0)
    table.grant(1, refused=range(6))
    table.grant(2)
    asked = table.step()
    silent, other = table.ids.index(asked[0].server_id), [0, 2]
    other.remove(silent)
    if table.of(other[0]):
        table.grant(other[0])
    table.step(ANSWER_LIMIT_S)
    while not table.plan.finished:
        for request in list(table.open):
            table.grant(table.ids.index(request.server_id))
        table.step()
    try:
        placed = table.placed()
    except NotHappyError:
        return
    assert table.ids[silent] not in placed


def test_select_when_a_server_fails_to_answer_what_it_holds_does_not_count_it() -> None:
    table = Table(3, k=1, n=3, happy=2)
    for request in table.of(0):
        table.open.remove(request)
        if isinstance(request, FindShares):
            table.plan.answer(request, {ShareNumber(0): []}, 0.0)
        else:
            table.plan.fail(request, PeerError("no"), 0.0)
    table.know(1)
    table.know(2)
    table.step()
    table.grant(1)
    table.grant(2)
    table.step()
    assert ServerId("s0") not in table.plan.result().existing
    assert {share for shares in table.placed().values() for share in shares} == {0, 1, 2}


def test_select_when_shares_exist_on_read_only_servers_renews_their_leases() -> None:
    table = Table(3, k=1, n=3, happy=3)
    table.know(0, held=[1], room=0)
    table.know(1)
    table.know(2)
    asked = {request.server_id: request for request in table.step() if isinstance(request, Allocate)}
    assert ServerId("s0") in asked
    assert 1 not in asked[ServerId("s1")].wanted | asked[ServerId("s2")].wanted


def test_select_when_repairing_asks_nobody_for_shares_and_trusts_what_is_given() -> None:
    table = Table(3, k=1, n=3, happy=0, existing={ServerId("s0"): [0], ServerId("far"): [1]})
    assert not [request for request in table.open if isinstance(request, FindShares)]
    assert "far" not in {request.server_id for request in table.open}
    for index in range(3):
        table.know(index)
    asked = {request.server_id: request.wanted for request in table.step() if isinstance(request, Allocate)}
    assert set().union(*asked.values()) <= {0, 2}
    for index in range(3):
        if table.of(index):
            table.grant(index, already=asked[table.ids[index]] & {0})
    table.step()
    assert table.plan.finished
    assert {share for shares in table.placed().values() for share in shares} == {2}


@pytest.mark.parametrize(
    ("held", "k", "happy", "words"),
    [
        ([[0], [1]], 3, 7, "shares could be placed or found on only 2 server(s). We were asked to place shares on"),
        (
            [[*range(9)], [0], [0], [0, 1], [1]],
            4,
            7,
            "shares could be placed or found on 5 server(s), but they are not spread out evenly enough",
        ),
        (
            [[0], [1], [2], [3], [*range(4, 9)]],
            3,
            7,
            "shares could be placed on only 5 server(s) such that any 3 of them have enough shares to",
        ),
        ([[0], [1]], 3, 1, "only 2 distinct shares could be placed or found, but 3 are needed"),
    ],
)
def test_message_when_happiness_is_not_reached_has_the_known_words(
    held: list[list[int]], k: int, happy: int, words: str
) -> None:
    shares = ((ServerId(f"server-{index}"), [ShareNumber(n) for n in numbers]) for index, numbers in enumerate(held))
    assert happiness_message(make_sharemap(shares), k, happy).startswith(words)
