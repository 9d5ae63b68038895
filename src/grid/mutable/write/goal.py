"""Chooses where the shares of a new version go: every location that has a share, and servers for the rest. [spec mutable 12, 15]

Pure. Each location has tests: what must still be there when it is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from grid.mutable.share.prefix import LONGEST_PREFIX, Prefix
from grid.mutable.share.versions import BadShare, ShareLocation, Sighting, VersionMap
from grid.placement.happiness import match_servers
from grid.ports import ServerId, ShareNumber

Tests = tuple[tuple[int, int, bytes], ...]
"""(offset, length, specimen): all must hold."""

ABSENT: Tests = ((0, 1, b""),)
"""There is no such share, or it is empty."""

Goal = dict[ShareLocation, Tests]

Guards = Mapping[ShareNumber, Tests]
"""What must hold for the other shares on a server so that it takes any share at all."""


def tests_of(share: Sighting | BadShare) -> Tests:
    """The tests that the share is still the one that was seen."""
    if isinstance(share, BadShare):
        return tests_of_front(share.front)
    return tests_of_version(share.prefix)


def tests_of_version(prefix: Prefix) -> Tests:
    """The tests that a share is of this version."""
    checkstring = prefix.checkstring
    return ((0, len(checkstring), checkstring),)


def guards_of(found: VersionMap, n: int, rewritten: Collection[ShareLocation] = ()) -> Mapping[ServerId, Guards]:
    """For each server that answered: the tests that it still holds the shares below n that it showed, and no others.

    Without these tests, two writers that choose different locations on one server would not notice each other. If no server showed
    two, those whose only share is `rewritten` at once need no tests of the others: a writer that saw it rewrites it, and one that
    saw none tests all numbers. Where a writer may put its shares beside the old ones, nothing must be `rewritten` in this sense.
    """
    shown: dict[ServerId, dict[ShareNumber, Tests]] = {server_id: {} for server_id in found.answered}
    for (server_id, number), share in found.locations().items():
        if server_id in shown and number < n:
            shown[server_id][number] = tests_of(share)
    nothing = dict.fromkeys(map(ShareNumber, range(n)), ABSENT)
    is_spread = all(len(tests) <= 1 for tests in shown.values())
    return {
        server_id: tests
        if tests and is_spread and all((server_id, number) in rewritten for number in tests)
        else nothing | tests
        for server_id, tests in shown.items()
    }


def tests_of_front(front: bytes) -> Tests:
    """The tests that a share starts with these bytes, at most LONGEST_PREFIX of them."""
    return ((0, LONGEST_PREFIX, front),) if front else ABSENT


def choose_goal(
    found: VersionMap,
    n: int,
    permitted: Sequence[ServerId],
    doubtful: Collection[ServerId] = frozenset(),
    happy: int = 0,
) -> Goal:
    """Every location of a share below n in the map, one location for each other number, and more until `happy` servers are reached.

    permitted: servers that may receive new shares, in the file's order; those that failed do not. doubtful: servers that
    may stay silent: a number that only they would hold gets a second location.
    """
    goal = {location: tests_of(share) for location, share in found.locations().items() if location[1] < n}
    usable = [server_id for server_id in permitted if server_id not in found.failed]
    for location in assign_homeless(_homeless(goal, n), goal, usable):
        goal[location] = ABSENT
    for location in spread(goal, n, happy, usable):
        goal[location] = ABSENT
    sure = [location for location in goal if location[0] not in doubtful]
    trusted = [server_id for server_id in usable if server_id not in doubtful]
    for location in assign_homeless(_homeless(sure, n), goal, trusted, avoid=goal.keys()):
        goal[location] = ABSENT
    return goal


def _homeless(locations: Iterable[ShareLocation], n: int) -> list[ShareNumber]:
    """The numbers below n that have none of these locations."""
    have = {number for _, number in locations}
    return [ShareNumber(number) for number in range(n) if number not in have]


def assign_homeless(
    homeless: Iterable[ShareNumber],
    goal: Collection[ShareLocation],
    usable: Sequence[ServerId],
    avoid: Collection[ShareLocation] = (),
) -> list[ShareLocation]:
    """A location for each of these share numbers, preferring the servers with the fewest shares. [spec mutable 15]

    avoid: locations that must not be used; a number with no other location gets none.
    """
    load = dict.fromkeys(usable, 0)
    for server_id, _ in goal:
        if server_id in load:
            load[server_id] += 1
    order = sorted(usable, key=lambda server_id: load[server_id])
    locations: list[ShareLocation] = []
    for index, number in enumerate(sorted(homeless)):
        turn = [order[(index + step) % len(order)] for step in range(len(order))]
        locations += [(server_id, number) for server_id in turn if (server_id, number) not in avoid][:1]
    return locations


def spread(
    locations: Iterable[ShareLocation],
    n: int,
    happy: int,
    usable: Sequence[ServerId],
    avoid: Collection[ShareLocation] = (),
) -> list[ShareLocation]:
    """Second locations for shares that crowd on few servers, until `happy` servers each have a share of their own.

    Without them, a file whose shares crowd could not be written any more, for example after a repair while servers were away, or
    on a grid that has grown. avoid: locations that must not be used.
    """
    held: dict[ServerId, int] = {}
    for server_id, number in locations:
        held[server_id] = held.get(server_id, 0) | 1 << number
    servers, matched = list(held), match_servers(list(held.values()))
    counted = {servers[index] for index in matched}
    # A server outside a largest matching holds no number that is outside it as well.
    free = [ShareNumber(number) for number in range(n) if number not in matched.values()]
    idle = [server_id for server_id in usable if server_id not in counted]
    chosen: list[ShareLocation] = []
    for server_id in sorted(idle, key=lambda server_id: held.get(server_id, 0).bit_count()):
        open_numbers = [number for number in free if (server_id, number) not in avoid]
        if open_numbers and len(counted) + len(chosen) < happy:
            free.remove(open_numbers[0])
            chosen.append((server_id, open_numbers[0]))
    return chosen


def hosts_of(locations: Iterable[ShareLocation]) -> Mapping[ShareNumber, set[ServerId]]:
    """Share number to the servers that have it."""
    hosts: dict[ShareNumber, set[ServerId]] = {}
    for server_id, number in locations:
        hosts.setdefault(number, set()).add(server_id)
    return hosts
