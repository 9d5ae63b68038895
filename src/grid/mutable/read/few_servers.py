"""Which servers a read asks first whether what it remembers is still the newest version. Pure.

A version is acknowledged once at least `happy` servers have it. Of any N - `happy` + 1 of the N servers, at least one has it, and the
signature on its share shows that it is newer. So as many servers are enough, if all of them answer; MARGIN more are asked
because a server may lie, or may have lost what it took. See docs/decisions/0512-few-servers-for-a-remembered-version.md.

The same servers are chosen for all files at a time, so that questions about several directories share messages. They change
with time, so that no few servers answer for the others for long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from grid.crypto.rsa import PublicKey
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import Sighting, VersionMap
from grid.ports import ServerId
from grid.values import frozen

MARGIN = 1

TURN_S = 1.0
"""How long the same servers are asked, if others are as near."""

LOOK_S = 30.0
"""All servers are asked if that was not done for so long: the nearest ones might lie together."""

NEAR_S = 0.02
"""Servers whose usual times differ by less are equally near."""


@frozen(kw_only=True)
class Few:
    """version: what is remembered. servers: those that are enough if nothing has changed there. holders: those of them that had it.

    public_key: with which the version's signature was checked when it was found, if that is remembered.
    """

    version: Prefix
    servers: frozenset[ServerId]
    holders: frozenset[ServerId]
    public_key: PublicKey | None = None

    def proven(self, fingerprint: bytes) -> tuple[PublicKey | None, set[Prefix]]:
        """What need not be proven again with a capability of this fingerprint: the key, and the prefixes that it has signed."""
        if self.public_key is None or self.public_key.fingerprint != fingerprint:
            return None, set()
        return self.public_key, {self.version}

    def is_unchanged(self, sightings: Iterable[Sighting], answered: AbstractSet[ServerId]) -> bool:
        """Whether those that have answered show the version, as remembered, and nothing that may be newer."""
        lacking = set(self.holders & answered)
        for share in sightings:
            if share.prefix == self.version:
                lacking.discard(share.server_id)
            elif share.prefix.seqnum >= self.version.seqnum:
                return False
        return not lacking


def choose_few(
    found: VersionMap,
    happy: int,
    is_doubtful: Callable[[ServerId], bool],
    latency_s: Callable[[ServerId], float],
    now: float,
    mapped_at: float,
) -> Few | None:
    """The servers to ask, the nearest ones; None if all must be asked.

    found: what is remembered of the file. mapped_at: when all servers were last asked.
    """
    best = found.best
    if best is None or found.is_outdated or found.rivals_of(best) or found.bad or now - mapped_at >= LOOK_S:
        return None
    count = max(len(found.servers), best.n) - min(happy, best.n) + 1 + MARGIN
    if count >= len(found.servers):
        return None
    turn = int(now / TURN_S) * count
    places = {server_id: place for place, server_id in enumerate(sorted(found.servers))}
    trusted = [s for s in found.servers if s in found.answered and s not in found.failed and not is_doubtful(s)]
    trusted.sort(key=lambda s: (int(latency_s(s) / NEAR_S), (places[s] - turn) % len(places)))
    few = frozenset(trusted[:count])
    held = [share for share in found.shares_of(best) if share.server_id in few]
    if len(few) < count or len({share.number for share in held}) < best.k:
        return None
    holders = frozenset(share.server_id for share in held)
    return Few(version=best, servers=few, holders=holders, public_key=found.public_key)
