"""Where new versions go, and how long writers wait for each other."""

from __future__ import annotations

from grid.mutable.share.geometry import Geometry
from grid.mutable.share.layout import plan_table
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import BadShare, Sighting, VersionMap
from grid.mutable.write import goal as goals
from grid.mutable.write.goal import ABSENT, assign_homeless, choose_goal, guards_of
from grid.mutable.write.goal import tests_of_version as unchanged
from grid.mutable.writing import next_delay
from grid.ports import ServerId, ShareNumber
from tests.support.virtual_time import SeededEntropy

SERVERS = [ServerId(f"s{index}") for index in range(5)]


def sighting(server: int, number: int, seqnum: int = 1) -> Sighting:
    geometry = Geometry.of_file(0, 10, 2, 6)
    prefix = Prefix.of_version(geometry, seqnum=seqnum, root_hash=bytes([seqnum]) * 32, iv=bytes(16))
    return Sighting(
        server_id=SERVERS[server],
        number=ShareNumber(number),
        prefix=prefix,
        table=plan_table(geometry, 294, 1218),
        head=b"",
    )


def test_goal_when_shares_are_known_then_keeps_their_places_and_spreads_the_rest() -> None:
    bad = BadShare(server_id=SERVERS[1], number=ShareNumber(4), front=b"\0junk", reason="junk")
    found = VersionMap(servers=SERVERS, sightings=[sighting(0, 0), sighting(0, 1, 2), sighting(2, 0)], bad=[bad])
    goal = choose_goal(found, 6, SERVERS)
    assert {location for location, tests in goal.items() if tests is not ABSENT} == {
        (SERVERS[0], 0),
        (SERVERS[0], 1),
        (SERVERS[2], 0),
        (SERVERS[1], 4),
    }
    assert goal[SERVERS[1], ShareNumber(4)] == ((0, 75, b"\0junk"),)
    assert goal[SERVERS[0], ShareNumber(0)] != goal[SERVERS[0], ShareNumber(1)]
    homeless = {location for location, tests in goal.items() if tests is ABSENT}
    assert homeless == {(SERVERS[3], 2), (SERVERS[4], 3), (SERVERS[1], 5)}


def test_goal_when_servers_failed_or_are_not_permitted_then_gives_them_nothing_new() -> None:
    found = VersionMap(servers=SERVERS, failed=frozenset([SERVERS[0]]))
    goal = choose_goal(found, 6, SERVERS[:3])
    assert {server for server, _ in goal} == {SERVERS[1], SERVERS[2]}
    assert choose_goal(found, 6, []) == {}


def test_homeless_when_there_are_more_than_servers_then_go_round() -> None:
    numbers = [ShareNumber(number) for number in range(7)]
    placed = assign_homeless(numbers, [], SERVERS[:3])
    assert [server for server, _ in placed] == [*SERVERS[:3], *SERVERS[:3], SERVERS[0]]


def test_guards_when_each_server_showed_one_share_at_most_are_of_that_share_or_of_all_numbers() -> None:
    found = VersionMap(servers=SERVERS, answered=frozenset(SERVERS[:3]), sightings=[sighting(0, 0), sighting(2, 4)])
    guards = guards_of(found, 6, [(SERVERS[0], ShareNumber(0)), (SERVERS[2], ShareNumber(4))])
    assert {server: set(tests) for server, tests in guards.items()} == {
        SERVERS[0]: {0},
        SERVERS[1]: set(range(6)),
        SERVERS[2]: {4},
    }
    assert guards[SERVERS[0]][ShareNumber(0)] == unchanged(sighting(0, 0).prefix)
    assert set(guards[SERVERS[1]].values()) == {ABSENT}
    beside = guards_of(found, 6, [(SERVERS[0], ShareNumber(0)), (SERVERS[2], ShareNumber(5))])
    assert [set(beside[server]) for server in SERVERS[:3]] == [{0}, set(range(6)), set(range(6))]


def test_guards_when_a_server_showed_two_shares_are_of_all_numbers_on_every_server() -> None:
    bad = BadShare(server_id=SERVERS[0], number=ShareNumber(5), front=b"\0junk", reason="junk")
    found = VersionMap(
        servers=SERVERS, answered=frozenset(SERVERS[:3]), sightings=[sighting(0, 0), sighting(2, 4)], bad=[bad]
    )
    guards = guards_of(found, 6, found.locations())
    assert [set(guards[server]) for server in SERVERS[:3]] == [set(range(6))] * 3
    absent = {
        server: {number for number in range(6) if guards[server][ShareNumber(number)] == ABSENT} for server in guards
    }
    assert absent == {SERVERS[0]: {1, 2, 3, 4}, SERVERS[1]: set(range(6)), SERVERS[2]: {0, 1, 2, 3, 5}}


def test_tests_when_of_an_empty_share_then_are_those_of_none() -> None:
    assert goals.tests_of_front(b"") == ABSENT


def test_delay_when_drawn_then_grows_by_e_and_differs_between_writers() -> None:
    entropy = SeededEntropy(1)
    first = [next_delay(entropy, 1.0) for _ in range(50)]
    assert len(set(first)) == 50
    assert 2.5 < sum(first) / 50 < 2.95 and min(first) > 1.0 and max(first) < 4.5
    assert 17 < sum(next_delay(entropy, 7.389) for _ in range(50)) / 50 < 23


def test_goal_when_shares_crowd_on_few_servers_then_empty_ones_get_as_many_as_safety_needs() -> None:
    crowded = VersionMap(servers=SERVERS, sightings=[sighting(index % 2, index) for index in range(6)])
    for happy in range(7):
        added = [server for server, tests in choose_goal(crowded, 6, SERVERS, happy=happy).items() if tests is ABSENT]
        assert len(added) == min(max(0, happy - 2), 3)
        assert len({server for server, _ in added}) == len({number for _, number in added}) == len(added)
