"""Checks and repairs a mutable file. [spec mutable 18]

If no other version can be newer, repair stores missing and damaged shares of the newest version again, byte for byte.
Only if versions compete, and with force, it makes a new version. If shares crowd on too few servers, it stores second copies.
"""

from __future__ import annotations

from collections.abc import Collection

from attrs import evolve

from grid.crypto.rsa import PrivateKey
from grid.engine.requests import UNREAD
from grid.errors import ConflictError, MustForceRepairError, NoServersError, NotEnoughSharesError, NotHappyError
from grid.mutable.publish import Release, move_into_place, publish, store_again
from grid.mutable.read.audit_plan import AuditReport
from grid.mutable.read.map_plan import MapMode
from grid.mutable.session import Session
from grid.mutable.share.health import CheckResult, RepairResult, storage_index_text
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import BadShare, ShareLocation, Sighting, VersionMap, front_of
from grid.mutable.sources import OverlaySource
from grid.mutable.write.goal import ABSENT, Goal, assign_homeless, spread, tests_of, tests_of_version
from grid.mutable.writing import find_for_write, require_key
from grid.placement.space import may_take
from grid.plural import counted
from grid.ports import ShareNumber

MOST_ROUNDS = 8
"""How often a repair looks for other servers. Each round leaves out the servers that have failed so far."""


async def check(session: Session, *, verify: bool = False, add_lease: bool = False) -> CheckResult:
    """Check a file's health. verify: check every byte of every share of the best version.

    NoServersError if no server answered.
    """
    found = await session.find(MapMode.CHECK, add_lease=add_lease, anew=verify)
    _require_answers(session, found)
    if not verify:
        found = await _without_pretended(session, found)
    return (await _examine(session, found, verify=verify))[0]


async def _without_pretended(session: Session, found: VersionMap) -> VersionMap:
    """The map, with a best version that can be read. If versions compete, one server may have made up a share of each."""
    while (
        len(found.versions()) > 1 and found.best is not None and found.best.size and session.keys.read_key is not None
    ):
        try:
            await session.gather(found, found.best, 0, 1)
            break
        except (ConflictError, NotEnoughSharesError):
            after = session.without_refuted(found)
            if len(after.sightings) == len(found.sightings):
                break
            found = after
    return found


async def repair(session: Session, *, force: bool = False, private_key: PrivateKey | None = None) -> RepairResult:
    """Verify the file and, if it is not healthy but some version can be read, restore its shares.

    AuthorityError without the write cap; MustForceRepairError if a version would be lost. An unrecoverable file is a
    result, not an error. Also raises the errors of a read and a publish.
    """
    session.keys.require_write_key()
    found = await find_for_write(session, MapMode.REPAIR, private_key)
    _require_answers(session, found)
    best = found.best
    if best is None:
        before, _ = await _examine(session, found, verify=False)
        return RepairResult(attempted=True, successful=False, before=before, after=before)
    if not force and (found.newer_unrecoverable or found.needs_merge):
        raise MustForceRepairError(
            "a newer version cannot be read, or two versions compete; a forced repair keeps the best that can be read"
        )
    key = require_key(found, private_key)
    moved = await move_into_place(session, found, key)
    before, examined = await _examine(session, moved, verify=True)
    is_whole = before.healthy and not before.corrupt and not found.bad and moved is found
    if is_whole and not _second_locations(session, examined, best):
        return RepairResult(attempted=False, successful=False, before=before, after=before)
    if found.newer_unrecoverable or found.needs_merge or examined.best != best:
        repaired = await _publish_anew(session, examined, key)
    else:
        repaired = await _store_everywhere(session, examined, best, key)
    after = CheckResult(storage_index=before.storage_index, found=repaired, verified=True, happy=before.happy)
    return RepairResult(attempted=True, successful=after.healthy, before=before, after=after)


async def _examine(session: Session, found: VersionMap, *, verify: bool) -> tuple[CheckResult, VersionMap]:
    """The result, and the map without the shares that proved bad (or were not meant to be read).

    If too few shares of the best version are good, the next version is examined as well.
    """
    name = storage_index_text(session.keys.storage_index)
    corrupt: dict[ShareLocation, str] = dict.fromkeys(found.unread, UNREAD)
    best, examined = found.best, None
    while verify and best is not None and best != examined:
        report = await session.audit(found, best)
        found = _without(found, report)
        corrupt.update(report.corrupt)
        best, examined = found.best, best
    happy = session.grid.encoding.happy
    others = best is not None and bool(_second_locations(session, found, best))
    checked = CheckResult(storage_index=name, found=found, corrupt=corrupt, verified=verify, happy=happy, others=others)
    return checked, found


def _without(found: VersionMap, report: AuditReport) -> VersionMap:
    """The map with only those shares that passed."""
    locations = {share.location: share for share in found.sightings}
    bad = [_as_bad(locations[location], reason) for location, reason in report.corrupt.items()]
    gone = report.corrupt.keys() | report.unread
    return evolve(
        found,
        sightings=[share for share in found.sightings if share.location not in gone],
        bad=[*found.bad, *bad],
        failed=found.failed | {server_id for server_id, _ in report.unread},
    )


def _as_bad(share: Sighting, reason: str) -> BadShare:
    return BadShare(server_id=share.server_id, number=share.number, front=front_of(share.head), reason=reason)


async def _publish_anew(session: Session, found: VersionMap, key: PrivateKey) -> VersionMap:
    """Publish a new version with the contents of the best one, replacing all others."""
    best = found.best
    if best is None:
        return found
    source = OverlaySource(session=session, found=found, prefix=best, offset=best.size, data=b"")
    release = Release(
        geometry=best.geometry,
        seqnum=found.highest_seqnum + 1,
        source=source,
        key=key,
        goal=session.goal_for(found, best.n),
        happy=min(session.grid.encoding.happy, best.n),
    )
    return await publish(session, found, release)


async def _store_everywhere(session: Session, found: VersionMap, best: Prefix, key: PrivateKey) -> VersionMap:
    """Store the same version again, moving shares that servers refused to other servers, until none is missing or no server is left."""
    for _ in range(MOST_ROUNDS):
        before, found = found, await _store_again(session, found, best, key)
        numbers = {share.number for share in found.shares_of(best)}
        is_whole = len(numbers) == best.n and not _second_locations(session, found, best)
        if is_whole or not found.failed - before.failed:
            break
    return found


async def _store_again(session: Session, found: VersionMap, best: Prefix, key: PrivateKey) -> VersionMap:
    """Store the same version wherever its share is missing, damaged, or of an older version."""
    held = frozenset(share.location for share in found.shares_of(best))
    goal: Goal = {
        location: _tests(share)
        for location, share in found.locations().items()
        if location not in held and location[1] < best.n and location[0] not in found.failed
    }
    have = {number for _, number in [*held, *goal]}
    homeless = [ShareNumber(number) for number in range(best.n) if number not in have]
    usable = [server_id for server_id in session.permitted if server_id not in found.failed]
    for location in assign_homeless(homeless, [*held, *goal], usable, avoid=goal.keys() | held):
        goal[location] = ABSENT
    for location in _second_locations(session, found, best, goal):
        goal[location] = ABSENT
    if not goal:
        return found
    try:
        return await store_again(session, found, best, key, goal, happy=0)
    except NotHappyError:  # A large version: none of these servers has taken its share.
        return evolve(found, failed=found.failed | {server_id for server_id, _ in goal})


def _second_locations(
    session: Session, found: VersionMap, best: Prefix, goal: Collection[ShareLocation] = ()
) -> list[ShareLocation]:
    """Additional locations for shares, if they crowd on fewer servers than a safe write needs.

    None are on servers that say that they have no room, though they may take it: a repair would try them each time. (decision 478)
    """
    held = [share.location for share in found.shares_of(best)]
    size = best.size // max(1, best.k)
    full = {each.identity.server_id for each in session.servers if not may_take(each, size)}
    usable = [server_id for server_id in session.permitted if server_id not in found.failed | full]
    return spread(
        [*held, *goal], best.n, min(session.grid.encoding.happy, best.n), usable, avoid=found.locations().keys()
    )


def _tests(share: Sighting | BadShare) -> tuple[tuple[int, int, bytes], ...]:
    return tests_of_version(share.prefix) if isinstance(share, Sighting) else tests_of(share)


def _require_answers(session: Session, found: VersionMap) -> None:
    if not found.answered:
        count = len(session.servers)
        raise NoServersError(
            f"none of {counted(count, 'server')} could be reached"
            if count
            else "no storage server is known; is the introducer reachable?"
        )
