"""Where the shares of one version have arrived, whether they are enough, and the error if they are not. Pure.

Part of the plans that write. It counts shares and finds locations for those that have none. The plans decide when a write
has failed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from grid.errors import (
    GridError,
    IntegrityError,
    MayHoldError,
    NotHappyError,
    PeerError,
    PeerGoneError,
    PeerRefusedError,
    PeerTimeoutError,
    PeerUnreachableError,
)
from grid.mutable.share.versions import ShareLocation
from grid.mutable.write.goal import ABSENT, Goal, Tests, assign_homeless, hosts_of, spread
from grid.mutable.write.write_job import WriteJob, Written
from grid.placement.happiness import happiness
from grid.plural import counted
from grid.ports import ServerId, ServerIdentity, ShareNumber

AS_IT_WAS = "nothing was changed"
"""The state of a file when a write failed before it changed anything."""
KEPT = "the old version stays"
"""The state if some shares were written, and too few to read them."""
IN_FORCE = "the change is in force all the same, but less safe than it should be"
MAY_HOLD = "the change may be in force all the same"
"""The state if servers that did not answer may have enough shares."""
MAX_NAMED = 10
"""Most servers that a message names. It only counts the others."""
_MAX_NAME = 40


class PlacedShares:
    """The locations of one write.

    goal: all locations chosen so far. due: those to write next. yielded: those left to another writer.
    """

    def __init__(self, job: WriteJob, goal: Goal) -> None:
        self._job = job
        self._tried: set[ShareLocation] = {*goal, *job.lost.bars, *job.lost.suspects, *job.spared.locations}
        self.goal = dict(goal)
        self.due = dict(goal)
        self.placed: set[ShareLocation] = set()
        self.removed: set[ShareLocation] = set()
        self.yielded: set[ShareLocation] = set()
        self._voters = _voters(job, goal)
        self._majority = _majority(job, len(self._voters))

    @property
    def has_majority(self) -> bool:
        """Whether most of the servers that held the old version have this one, so that no rival of it can have most of them."""
        return len({server_id for server_id, _ in self.placed} & self._voters) >= self._majority

    @property
    def safe(self) -> set[ShareLocation]:
        """The locations that have the version."""
        return self.placed | self._job.held

    @property
    def numbers(self) -> int:
        """Number of distinct shares of the version that are stored."""
        return len(hosts_of(self.safe))

    @property
    def happiness(self) -> int:
        """How many servers each hold a share of their own."""
        return happiness(hosts_of(self.safe))

    def are_enough(self, more: Collection[ShareLocation] = ()) -> bool:
        """Whether the version is safe, or would be with these further locations."""
        return are_enough(self.safe.union(more), self._job.prefix.k, self._job.happy)

    def taken(self, done: Collection[ShareLocation]) -> None:
        """Note that a server has written these locations, or removed the shares there."""
        self.removed |= self._job.removes.intersection(done)
        self.placed |= set(done) - self._job.removes

    def require(self, location: ShareLocation, tests: Tests) -> None:
        """Make a location due, to be written if these tests hold."""
        self.due[location] = tests
        self.goal.setdefault(location, tests)

    def forget(self, server_id: ServerId) -> None:
        """Stop counting the shares that this server says it took."""
        self.placed = {location for location in self.placed if location[0] != server_id}

    def find_homes(
        self, broken: Collection[ServerId], silent: Collection[ServerId], late: Collection[ShareLocation]
    ) -> None:
        """Find other locations for the shares of servers that failed and, if needed, of late ones.

        broken: servers that failed. silent: servers that have not answered everything. late: locations on late servers.
        """
        for location in [location for location in self.due if location[0] in broken]:
            del self.due[location]
        taken = [*self.safe, *self.due]
        is_safe = self.are_enough()
        if is_safe and self._job.base is not None:
            # Other writers count what they find, so a version must not use unexpected locations without need.
            taken += late
        have = {number for _, number in taken}
        homeless = [ShareNumber(number) for number in range(self._job.prefix.n) if number not in have]
        usable = [server_id for server_id in self._job.spares if server_id not in broken and server_id not in silent]
        locations = assign_homeless(homeless, taken, usable, avoid=self._tried)
        if not is_safe:
            avoid = {*self._tried, *locations}
            locations += spread([*taken, *locations], self._job.prefix.n, self._job.happy, usable, avoid)
        for location in locations:
            self._tried.add(location)
            self.goal[location] = self.due[location] = ABSENT

    def unsettled(self, failures: Mapping[ServerId, GridError]) -> NotHappyError:
        """The error if too few servers took the version: MayHoldError if enough to read it have it, or may have it.

        failures: why servers did not take it. Only what replaces a version can hold: nobody has the capability of a new file.
        """
        job = self._job
        counts = self.happiness, job.happy, self.numbers, job.prefix.k
        if job.base is None:
            return too_few(*counts, verb="took shares", failures=failures)
        doubtful = {server_id for server_id, error in failures.items() if _may_have_arrived(error)}
        possible = hosts_of([*self.safe, *(location for location in self.goal if location[0] in doubtful)])
        holds, may_hold = self.numbers >= job.prefix.k, len(possible) >= job.prefix.k
        if holds or may_hold:
            state = IN_FORCE if holds else MAY_HOLD
        else:
            state = KEPT if self.placed else AS_IT_WAS
        error = too_few(*counts, verb="took the new version", failures=failures, state=state)
        if not may_hold:
            return error
        return MayHoldError(str(error), causes=error.causes, unreachable=error.unreachable, holds=holds)

    def written(self) -> Written:
        """The result of the write."""
        lost = self.goal.keys() - self.placed - self.removed
        return Written(locations=frozenset(self.placed), removed=frozenset(self.removed), lost=frozenset(lost))


def _voters(job: WriteJob, goal: Goal) -> frozenset[ServerId]:
    """The servers on which this write replaces shares, or finds them unchanged: each of them takes one of two rivals."""
    found = {server_id for (server_id, _), tests in goal.items() if tests != ABSENT}
    found |= {
        server_id for server_id, guards in job.guards.items() if any(tests != ABSENT for tests in guards.values())
    }
    return frozenset(found)


def _majority(job: WriteJob, voters: int) -> int:
    """How many voters are most of the servers that may hold the old version; 0 if the write has no rivals."""
    if job.base is None or job.held or job.removes:
        return 0
    return max(voters, min(job.prefix.n, voters + job.hidden)) // 2 + 1


def are_enough(locations: Iterable[ShareLocation], k: int, happy: int) -> bool:
    """Whether shares at these locations make a version safe."""
    hosts = hosts_of(locations)
    return len(hosts) >= k and happiness(hosts) >= happy


def too_few(
    reached: int, happy: int, shares: int, k: int, *, verb: str, failures: Mapping[ServerId, GridError], state: str = ""
) -> NotHappyError:
    """The error for a failed write. verb: what too few servers did. failures: why the others did not. state: of the file."""
    if reached < happy:
        took = f"only {counted(reached, 'server')}" if reached else "no server"
        text = f"{took} {verb}, and {happy} are needed"
    else:
        text = f"only {counted(shares, 'share')} could be stored, and {k} are needed to read the file"
    unreachable = [
        server_id for server_id, why in failures.items() if isinstance(why, PeerGoneError | PeerTimeoutError)
    ]
    return NotHappyError(
        f"{text}; {state}" if state else text, causes=list(failures.values()), unreachable=sorted(unreachable)
    )


def _may_have_arrived(error: GridError) -> bool:
    """Whether a server that failed like this may have the shares all the same: it got them, or it lied. A refusal is an answer."""
    return isinstance(error, PeerError | IntegrityError) and not isinstance(
        error, PeerUnreachableError | PeerRefusedError
    )


def name_missing(
    error: NotHappyError, servers: Iterable[ServerIdentity], failed: Collection[ServerId]
) -> NotHappyError:
    """The same error with the names of all servers that could not be reached. failed: those that failed before the write."""
    known = {server.server_id: server.nickname for server in servers}
    missing = [server_id for server_id in known if server_id in failed or server_id in error.unreachable]
    if not missing:
        return error
    if len(missing) == len(known):
        text = f"{error}; none of {counted(len(known), 'server')} can be reached"
        return _reworded(error, text, missing)
    names = [(known[server_id] or server_id.removeprefix("v0-")[:8])[:_MAX_NAME] for server_id in missing]
    shown = ", ".join(names[:MAX_NAMED])
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    text = f"{error}; {len(missing)} of {counted(len(known), 'server')} cannot be reached ({shown}{more})"
    return _reworded(error, text, missing)


def _reworded(error: NotHappyError, text: str, missing: list[ServerId]) -> NotHappyError:
    if isinstance(error, MayHoldError):
        return MayHoldError(text, causes=error.causes, unreachable=missing, holds=error.holds)
    return NotHappyError(text, causes=error.causes, unreachable=missing)
