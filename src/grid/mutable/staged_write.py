"""Replaces a version in two stages: writes the new one beside the old one, then into its place. See staging.py for why and where.

It owns the order of the stages. At every instant one of the two versions has k shares. A failure after the first stage leaves
old shares behind, and the next write or repair removes them.

Cost: round trips: one more. Network: no more than otherwise, because the old shares are only removed.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from grid.mutable.session import Session
from grid.mutable.share.versions import VersionMap
from grid.mutable.write.staging import Stage, needs_stage, plan_stage
from grid.mutable.write.write_job import NOTHING, SparedShares, WriteJob


def stage_of(session: Session, found: VersionMap) -> Stage | None:
    """Where a new version goes first if writing over the old one could leave neither whole; None if it could not."""
    best = found.best
    if best is None or not needs_stage(found, best):
        return None
    usable = [server_id for server_id in session.permitted if server_id not in found.failed]
    return plan_stage(found, best, usable, min(session.grid.encoding.happy, best.n))


async def write_staged(
    session: Session, found: VersionMap, job: WriteJob, stage: Stage, update: Callable[..., VersionMap]
) -> VersionMap:
    """Write the version beside the old one. Once it is safe there, write it into the old one's place, or remove the old shares."""
    best = found.best
    assert best is not None
    first = evolve(
        job,
        happy=stage.happy(job.happy),
        spared=SparedShares(front=best.checkstring, locations=frozenset(stage.old)),
        held=frozenset(),
    )
    beside = await session.write(first, stage.goal)
    found = update(found, written=beside)
    numbers = {number for _, number in beside.locations}
    old = {location: tests for location, tests in stage.old.items() if location[0] not in found.failed}
    last = evolve(
        job,
        held=beside.locations,
        spares=(),
        spared=SparedShares(front=job.spared.front, locations=frozenset(old)),
        guards={},
        removes=frozenset(location for location in old if location[1] in numbers),
    )
    return update(found, written=await session.write(last, old), held=beside.locations)


async def remove_old(session: Session, before: VersionMap, staged: VersionMap, stage: Stage) -> VersionMap:
    """Remove the old shares once a version that was streamed beside them is safe."""
    best = staged.best
    if before.best is None or best is None:
        return staged
    shares = staged.shares_of(best)
    old = {location: tests for location, tests in stage.old.items() if location[0] not in staged.failed}
    job = WriteJob(
        prefix=best,
        contents=NOTHING,
        base=before.best.order,
        happy=0,
        settle=False,
        held=frozenset(share.location for share in shares),
        removes=frozenset(old),
    )
    written = await session.write(job, old)
    gone = {server_id for server_id, _ in written.lost}
    return evolve(
        staged,
        sightings=[share for share in staged.sightings if share.prefix == best or share.location not in old],
        failed=staged.failed | gone,
    )
