"""Room requested at once from servers that are known to have some, before it is known who holds shares."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from grid.engine.requests import ServerRequest
from grid.immutable.share.requests import Allocate, AskVersion, FindShares
from grid.immutable.write.select_plan import GRACE_FLOOR_S, Selection, SelectPlan
from grid.ports import Allocation, ServerId, ServerVersion, ShareNumber
from tests.immutable.write.test_select_plan import Granted

ROOM = ServerVersion(
    application="x", maximum_immutable_share_size=10**6, maximum_mutable_share_size=1, available_space=10**6
)
FULL = evolve(ROOM, maximum_immutable_share_size=0)


class KnownServers:
    """Plays servers that hold some shares. refusing: those that are full by now. silent: those that answer nothing."""

    def __init__(
        self,
        held: dict[int, Iterable[int]],
        *,
        count: int = 10,
        n: int = 10,
        full: Iterable[int] = (),
        refusing: Iterable[int] = (),
        silent: Iterable[int] = (),
    ) -> None:
        self.ids = [ServerId(f"s{index}") for index in range(count)]
        self.held = {self.ids[index]: frozenset(map(ShareNumber, numbers)) for index, numbers in held.items()}
        self.full = {self.ids[index] for index in full}
        self.refusing = {self.ids[index] for index in refusing}
        self.silent = {self.ids[index] for index in silent}
        versions = {server_id: FULL if server_id in self.full else ROOM for server_id in self.ids}
        self.plan = SelectPlan(self.ids, k=3, n=n, happy=7, share_size=1000, versions=versions)
        self.rounds: list[list[ServerRequest]] = []

    def select(self) -> Selection:
        """Answer everything round by round, until the plan has finished."""
        now = 0.0
        while not self.plan.finished:
            fresh = [request for request in self.plan.advance(now) if isinstance(request, ServerRequest)]
            if fresh:
                self.rounds.append(fresh)
            for request in fresh:
                if request.server_id not in self.silent:
                    self.plan.answer(request, self._answer(request), now)
            if not fresh:
                now += GRACE_FLOOR_S
            self.plan.withdrawn()
        return self.plan.result()

    def _answer(self, request: ServerRequest) -> object:
        held = self.held.get(request.server_id, frozenset())
        if isinstance(request, Allocate):
            taken = frozenset() if request.server_id in self.refusing else request.wanted - held
            return Allocation(already=held, upload=Granted(taken))
        if isinstance(request, AskVersion):
            return FULL if request.server_id in self.full else ROOM
        return dict.fromkeys(held, ())

    def sent(self, kind: type) -> int:
        """How many messages of that kind were sent."""
        return sum(isinstance(request, kind) for messages in self.rounds for request in messages)


def pushed(selection: Selection) -> list[int]:
    return sorted(share for shares in selection.placed.values() for share in shares)


def test_select_when_all_servers_are_known_takes_one_round_and_one_message_each() -> None:
    servers = KnownServers({})
    selection = servers.select()
    assert pushed(selection) == list(range(10)) and selection.happiness == 10
    assert [len(messages) for messages in servers.rounds] == [10]
    assert servers.sent(Allocate) == 10


def test_select_when_the_file_is_where_it_would_go_takes_one_round_and_places_nothing() -> None:
    servers = KnownServers({index: [index] for index in range(10)})
    selection = servers.select()
    assert pushed(selection) == [] and selection.happiness == 10
    assert [len(messages) for messages in servers.rounds] == [10]


def test_select_when_the_file_is_elsewhere_places_nothing_of_what_it_was_granted() -> None:
    # A server has joined, and all shares are one server further than they would go now.
    servers = KnownServers({index + 1: [index] for index in range(10)}, count=11)
    selection = servers.select()
    assert pushed(selection) == []
    assert {share for shares in selection.existing.values() for share in shares} == set(range(10))
    assert len(servers.rounds) == 2  # The last server was only asked what it holds, and then renews its lease.
    assert [request.server_id for request in servers.rounds[1]] == ["s10"]


def test_select_when_some_shares_exist_places_only_the_others_where_room_was_granted() -> None:
    servers = KnownServers({0: [4], 1: [0]})
    selection = servers.select()
    assert pushed(selection) == [1, 2, 3, 5, 6, 7, 8, 9]
    assert selection.happiness == 10
    # Eight shares for eight other servers: those that were granted room for theirs are not asked again.
    assert servers.sent(FindShares) == servers.sent(AskVersion) == 0
    again = [request for request in servers.rounds[1] if isinstance(request, Allocate)]
    assert all(request.wanted.isdisjoint({ShareNumber(servers.ids.index(request.server_id))}) for request in again)
    assert len(again) < 8


def test_select_when_a_server_has_become_full_places_its_share_in_a_second_round() -> None:
    servers = KnownServers({}, refusing=[3])
    selection = servers.select()
    assert pushed(selection) == list(range(10)) and ServerId("s3") not in selection.placed
    assert [len(messages) for messages in servers.rounds] == [10, 1]


def test_select_when_a_server_is_silent_places_its_share_elsewhere() -> None:
    servers = KnownServers({}, silent=[3])
    selection = servers.select()
    assert pushed(selection) == list(range(10)) and ServerId("s3") not in selection.placed


def test_select_when_there_are_more_servers_than_shares_also_asks_them_what_they_hold() -> None:
    servers = KnownServers({12: [2]}, count=14, full=[13])
    selection = servers.select()
    assert pushed(selection) == [0, 1, 3, 4, 5, 6, 7, 8, 9]
    assert selection.existing == {ServerId("s12"): {2}}
    assert servers.sent(FindShares) == 4
    assert servers.sent(AskVersion) == 1  # Of the one that was full.


def test_select_when_too_few_servers_are_known_to_have_room_asks_all_first() -> None:
    servers = KnownServers({}, full=[9])
    selection = servers.select()
    assert pushed(selection) == list(range(10))
    assert [type(request) for request in servers.rounds[0]].count(FindShares) == 10
    assert len(servers.rounds) == 2
