"""Rivals of a version in maps and writes: which one is the best, and which one counts as another writer's."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from grid.mutable.share.layout import plan_table
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import Sighting, VersionMap
from grid.mutable.write.other_writers import Conflicts, OtherWriters
from grid.ports import ServerId, ShareNumber
from tests.mutable.write.test_rival_patience import prefix_of, server

FIRST, LOWER, HIGHER = prefix_of(1, 1, b"o"), prefix_of(1, 2, b"a"), prefix_of(1, 2, b"z")
NEXT = prefix_of(1, 3, b"n")


def map_of(shown: Mapping[int, Prefix], count: int = 5) -> VersionMap:
    """A map of some servers, which show one share each, of these versions."""
    servers = [server(number) for number in range(count)]
    sightings = [
        Sighting(
            server_id=server(number),
            number=ShareNumber(number),
            prefix=prefix,
            table=plan_table(prefix.geometry, 294, 1216),
            head=prefix.pack(),
        )
        for number, prefix in shown.items()
    ]
    return VersionMap(servers=servers, answered=frozenset(map(server, shown)), sightings=sightings)


@pytest.mark.parametrize(
    ("shown", "best", "contested"),
    [
        ({0: LOWER, 1: LOWER, 2: LOWER, 3: HIGHER, 4: HIGHER}, LOWER, False),
        ({0: LOWER, 1: LOWER, 3: HIGHER, 4: HIGHER}, HIGHER, True),
        ({0: LOWER, 1: LOWER, 2: FIRST, 4: HIGHER}, LOWER, True),
        ({0: FIRST, 1: FIRST, 2: FIRST, 3: FIRST, 4: HIGHER}, HIGHER, False),
        ({0: FIRST, 1: FIRST}, FIRST, False),
    ],
)
def test_best_version_when_rivals_are_seen_is_the_one_on_most_servers(
    shown: Mapping[int, Prefix], best: Prefix, contested: bool
) -> None:
    found = map_of(shown)
    assert found.best == best
    assert found.is_contested == contested


def gave_way(version: Prefix, base: Prefix) -> Conflicts:
    conflicts = Conflicts()
    conflicts.note({}, version.order, base.order)
    return conflicts


def test_version_that_gave_way_comes_last_while_another_may_have_won() -> None:
    found = gave_way(NEXT, HIGHER).apply(map_of({0: LOWER, 1: LOWER, 2: LOWER, 3: NEXT, 4: HIGHER}))
    assert found.best == LOWER
    assert not found.is_contested
    found = gave_way(NEXT, HIGHER).apply(map_of({0: LOWER, 3: NEXT, 4: HIGHER}))
    assert found.best == HIGHER
    assert found.is_contested


def test_version_that_gave_way_comes_first_if_most_servers_have_it_or_what_it_replaced() -> None:
    found = gave_way(NEXT, LOWER).apply(map_of({0: NEXT, 1: LOWER, 2: LOWER, 3: HIGHER, 4: HIGHER}))
    assert found.best == NEXT


def test_version_that_appeared_since_the_map_is_a_rival_if_it_is_as_new_as_the_base() -> None:
    others = OtherWriters(prefix=NEXT, base=HIGHER.order)
    others.appeared(LOWER.order, LOWER.order)
    others.appeared(HIGHER.order, FIRST.order)
    others.appeared(FIRST.order, (0, b""))
    assert not any(others.is_newer(prefix.order) for prefix in (FIRST, LOWER, HIGHER))
    others.appeared(LOWER.order, FIRST.order)
    assert others.is_newer(LOWER.order)
    others.note(ServerId("server0"), {LOWER.order: frozenset({ShareNumber(0)})})
    assert not others.may_go_on(4, frozenset(), 0)
