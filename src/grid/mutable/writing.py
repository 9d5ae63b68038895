"""What every write to a mutable file starts with: a good enough map, the private key, and the waits. [spec mutable 13, 16]

It owns the waits, for a writer that seems to be active and before a retry, and what happens to rivals that are left after them.

Cost: round trips: one for a map. After a collision that left rivals without a majority, and servers that have none of them, one more to
store a rival there; one before that to read it, if its bytes did not come with the map; one after it for another map, if it failed.
"""

from __future__ import annotations

import math

from grid.crypto.rsa import PrivateKey
from grid.errors import CapError, FormatError, GridError, IntegrityError, NoServersError, NotEnoughSharesError
from grid.mutable.publish import store_again
from grid.mutable.read.layout_cache import Speculate
from grid.mutable.read.map_plan import MapMode
from grid.mutable.session import Session
from grid.mutable.share.keys import FileKeys
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import ShareLocation, VersionMap
from grid.mutable.write.goal import ABSENT, Goal, spread, tests_of
from grid.plural import counted
from grid.ports import Entropy, ServerId

UNFINISHED_WAITS_S = (1.0, 3.0)
"""A version with too few shares, or one of two rivals of which neither has most servers, may be one that is being written:
it gets this long."""

MOST_LOOKS = 6
"""As long as its shares become more or fewer, it gets the last of these waits again, up to this many in all."""

RETRIES = 3
FIRST_DELAY_S = 1.0
DELAY_DEVIATION = 0.11962656492
"""After collisions, wait for about 2.7, 7.4 and 20 s, as 1.20 does. [spec mutable 16]"""


async def find_for_write(
    session: Session, mode: MapMode, private_key: PrivateKey | None, speculate: Speculate | None = None
) -> VersionMap:
    """Find a map to write by. If a version exists that is newer than all readable ones, or two rivals do of which neither has
    most servers, give their writers time to finish first, and then help one of the rivals to get them.

    If a write could fail only because servers were silent, ask all servers once more.
    """
    found = await session.find(mode, private_key=private_key, speculate=speculate)
    if len(found.servers) - len(found.failed) < session.grid.encoding.happy <= len(found.servers) and found.silent:
        found = await session.find(mode, private_key=found.private_key or private_key, speculate=speculate)
    before: VersionMap | None = None
    for look in range(MOST_LOOKS):
        enough = min([session.grid.encoding.happy, *(prefix.n for prefix in found.newer_unrecoverable)])
        if not (found.newer_unrecoverable or found.is_contested) or len(found.answered) < enough:
            break  # If too few servers answer, no write succeeds, however long this waits for the other writer.
        if look >= len(UNFINISHED_WAITS_S) and before is not None and _shown(found) == _shown(before):
            break  # Nobody is writing any more.
        await session.grid.runtime.clock.sleep(UNFINISHED_WAITS_S[min(look, len(UNFINISHED_WAITS_S) - 1)])
        before, patiently = found, found.is_contested
        found = await session.find(mode, private_key=found.private_key, speculate=speculate, patiently=patiently)
    key = found.private_key or private_key
    goal = _free_goal(found, session.permitted) if found.is_contested and mode is not MapMode.REPAIR else {}
    if goal and key is not None:
        found = await _decide(session, found, key, goal)
        if found.is_contested:
            found = await session.find(mode, private_key=key, speculate=speculate, patiently=True)
    return found


async def _decide(session: Session, found: VersionMap, key: PrivateKey, goal: Goal) -> VersionMap:
    """Store the best version on these servers, which have none of its rivals. Returns the map afterwards.

    A message of a rival's writer may still be on its way, and complete it after somebody has built on the best: an acknowledged
    change would be lost. If those servers take the best, no rival can get most of the servers that may hold the file any more. If
    one of them has taken a rival meanwhile, the next map shows who has won. It stays the same version, because a new one, on few
    servers, would have the higher sequence number, and come before the rival. See docs/decisions/0363-decide-between-rivals.md.

    Failures are not errors: the map is then the same, and still contested.
    """
    try:
        return await store_again(session, found, require_best(found), key, goal, happy=found.majority)
    except GridError:
        return found


def _free_goal(found: VersionMap, permitted: list[ServerId]) -> Goal:
    """Where the best version can be stored in place of older ones, and beside nothing; empty if that would not be on most servers.

    A server that shows no share may be one that never held the file, while a silent one holds a rival that is acknowledged. The
    best would then get most servers by a vote that nobody counted on. So it goes to such servers only if all have answered.
    """
    best = found.best
    if best is None:
        return {}
    readable = set(found.recoverable())
    rivals = [prefix for prefix in found.rivals_of(best) if prefix.seqnum > best.seqnum or prefix in readable]
    taken = {share.server_id for share in found.sightings if share.prefix in (best, *rivals)}
    free = found.answered - found.failed - taken
    goal: Goal = {
        location: tests_of(share)
        for location, share in found.locations().items()
        if location[0] in free and location[1] < best.n
    }
    held = [share.location for share in found.shares_of(best)]
    is_whole = not found.failed and found.answered.issuperset(found.servers)
    idle = [server_id for server_id in permitted if server_id in free] if is_whole else []
    for location in spread([*held, *goal], best.n, found.majority, idle, avoid=goal):
        goal[location] = ABSENT
    holders = {server_id for server_id, _ in [*held, *goal]}
    return goal if len(holders) >= found.majority else {}


def _shown(found: VersionMap) -> dict[ShareLocation, tuple[int, bytes]]:
    return {share.location: share.prefix.order for share in found.sightings}


def require_best(found: VersionMap) -> Prefix:
    """The newest readable version; NotEnoughSharesError, or NoServersError if no server answered."""
    best = found.best
    if best is not None:
        return best
    if not found.answered:
        count = len(found.servers)
        raise NoServersError(
            f"none of {counted(count, 'server')} could be reached"
            if count
            else "no storage server is known; is the introducer reachable?"
        )
    versions = found.unrecoverable()
    if not versions:
        bad = f"; {counted(len(found.bad), 'is', 'are')} damaged" if found.bad else ""
        raise NotEnoughSharesError(
            f"no share of the file was found on {counted(len(found.answered), 'server')}{bad}", found=0, needed=1
        )
    newest = versions[0]
    have = len({share.number for share in found.shares_of(newest)})
    raise NotEnoughSharesError(
        f"only {counted(have, 'share')} of the directory or mutable file {'was' if have == 1 else 'were'} found, and"
        f" {newest.k} are needed",
        found=have,
        needed=newest.k,
    )


def require_size(prefix: Prefix, largest: int | None) -> Prefix:
    """Return the version if it has at most that many bytes; FormatError otherwise."""
    if largest is not None and prefix.size > largest:
        raise FormatError(f"the file has {prefix.size} bytes; the limit here is {largest}")
    return prefix


def require_key(found: VersionMap, private_key: PrivateKey | None) -> PrivateKey:
    """The file's private key; IntegrityError if no share supplied it."""
    key = found.private_key or private_key
    if key is None:
        raise IntegrityError("no share that could be read holds the file's private key, so it cannot be written")
    return key


def require_same_format(keys: FileKeys, prefix: Prefix) -> None:
    """Raise CapError if the capability is for the other format. [spec mutable 1]"""
    if keys.version != prefix.version:
        names = ("SDMF", "MDMF")
        raise CapError(
            f"the file is stored as {names[prefix.version]}, but this capability is for {names[keys.version]}: "
            f"use its {names[prefix.version]} capability"
        )


def next_delay(entropy: Entropy, delay_s: float) -> float:
    """The next wait in seconds: longer than the last one, delay_s (FIRST_DELAY_S before the first), and randomized."""
    mean = delay_s * math.e
    # The sum of twelve uniform numbers is close enough to a normal one.
    data = entropy.random_bytes(48)
    uniform = [int.from_bytes(data[index : index + 4]) / 2**32 for index in range(0, 48, 4)]
    return max(0.1, mean + DELAY_DEVIATION * mean * (sum(uniform) - 6.0))
