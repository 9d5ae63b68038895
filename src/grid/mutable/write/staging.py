"""Where a new version goes first if writing over the old one could leave neither whole. [spec mutable 15]

Shares are overwritten in place, one server after the other, in any order. With k of n, and m numbers of the old version in
reach, some order leaves fewer than k of both if m < 2k - 1. A client that dies at that moment loses the file. In that case the new
shares are first placed beside the old ones, under other numbers or on other servers, and the old ones go once the new version is safe.

Pure. See docs/decisions/0146-one-version-at-every-instant.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import ShareLocation, VersionMap
from grid.mutable.write.goal import ABSENT, Goal, hosts_of, spread, tests_of
from grid.placement.happiness import happiness
from grid.ports import ServerId, ShareNumber
from grid.values import frozen


@frozen(kw_only=True)
class Stage:
    """goal: the locations of the first stage. old: those of the version being replaced, which the first stage must not touch."""

    goal: Goal
    old: Goal

    def happy(self, wanted: int) -> int:
        """How many servers with a share of their own the first stage must reach if `happy` are required in the end."""
        return min(wanted, happiness(hosts_of(self.goal)))


def is_risky(k: int, n: int) -> bool:
    """Whether a writer without stages can lose a file with this encoding even if all its shares exist."""
    return n < 2 * k - 1


def may_be_staged(k: int, n: int) -> bool:
    """Whether a writer whose map shows half of the shares may put new ones beside them, and leave the old ones unchanged."""
    return n < 2 * (2 * k - 1)


def encoding_notice(k: int, n: int) -> str | None:
    """The notice for users who configure or use this encoding for mutable files; None if none is needed."""
    if not is_risky(k, n):
        return None
    return (
        f"with {k} of {n} shares needed, a Tahoe-LAFS client that dies while it overwrites a mutable file or a directory can "
        f"lose it; Grid takes an extra step to prevent that. Up to {(n + 1) // 2} of {n} needs no such step"
    )


def needs_stage(found: VersionMap, prefix: Prefix) -> bool:
    """Whether some order of writes over this version could leave fewer than k shares of both it and the new one."""
    held: dict[ServerId, set[ShareNumber]] = {}
    for share in found.shares_of(prefix):
        held.setdefault(share.server_id, set()).add(share.number)
    numbers = set().union(*held.values())
    # One server's shares change in one message, all or none.
    return len(numbers) < 2 * prefix.k - 1 and any(len(group) < prefix.k for group in held.values())


def plan_stage(found: VersionMap, prefix: Prefix, usable: Sequence[ServerId], happy: int = 0) -> Stage | None:
    """A location for every number that costs no share of this version; None if fewer than k numbers have one.

    usable: servers that may receive new shares, in the file's order, those in doubt last. The locations follow from the map
    alone, so that two writers choose the same. Servers without a share get more, until `happy` have a share of their own.
    """
    shares = [share for share in found.shares_of(prefix) if share.number < prefix.n]
    order = {server_id: index for index, server_id in enumerate(found.servers)}
    shares.sort(key=lambda share: (order.get(share.server_id, len(order)), share.number))
    primary: dict[ShareNumber, ServerId] = {}
    for share in shares:
        primary.setdefault(share.number, share.server_id)
    known = found.locations()
    old: Goal = {share.location: tests_of(share) for share in shares}
    needed = {(server_id, number) for number, server_id in primary.items()}
    goal: Goal = {p: tests_of(share) for p, share in known.items() if p not in old and p[1] < prefix.n}
    staged = _locations(prefix.n, primary, needed, usable)
    if len(staged) < prefix.k:
        return None
    for location in staged:
        goal[location] = tests_of(known[location]) if location in known else ABSENT
    goal.update(dict.fromkeys(spread(goal, prefix.n, happy, usable, avoid=known.keys()), ABSENT))
    return Stage(goal=goal, old={location: tests for location, tests in old.items() if location not in goal})


def _locations(
    n: int, primary: Mapping[ShareNumber, ServerId], needed: set[ShareLocation], usable: Sequence[ServerId]
) -> list[ShareLocation]:
    """One location for each number that can have one. If possible, each server gets as many as it holds."""
    held = list(primary.items())
    sizes = [sum(server_id == other for _, other in held) for server_id in set(primary.values())]
    shift = max(sizes, default=0)
    load = dict.fromkeys(usable, 0)
    locations: list[ShareLocation] = []
    rest: list[ShareNumber] = [ShareNumber(number) for number in range(n) if number not in primary]
    for index, (number, _) in enumerate(held):
        # Shifted by the largest server's count, no number goes to a server that holds it, unless that one holds most.
        server_id = held[(index + shift) % len(held)][1]
        if server_id in load and (server_id, number) not in needed:
            load[server_id] += 1
            locations.append((server_id, number))
        else:
            rest.append(number)
    for number in sorted(rest):
        free = [server_id for server_id in usable if (server_id, number) not in needed]
        if free:
            server_id = min(free, key=lambda server_id: load[server_id])
            load[server_id] += 1
            locations.append((server_id, number))
    return locations
