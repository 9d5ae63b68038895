"""The health of a mutable file as users and programs see it. [spec mutable 18; placement 9.2, 10]

Pure values, made from a version map and the result of a verification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.codec.base32 import encode
from grid.mutable.share.versions import ShareLocation, Sighting, VersionMap, distinct_hosts, version_name
from grid.placement import health
from grid.placement.happiness import happiness
from grid.plural import counted
from grid.ports import ServerId
from grid.values import field, frozen

UNKNOWN_ENCODING = (3, 10)
"""k and N in the result for a file with no shares found."""


@frozen(kw_only=True)
class CheckResult:
    """What a check found. storage_index: base32. found: every good share and every bad one.

    corrupt: shares that failed verification, with reasons. verified: whether all shares were read. happy: how many servers
    must each hold a share of their own for a write to be safe. others: whether servers without one may receive shares.
    """

    storage_index: str
    found: VersionMap = field(repr=False)
    corrupt: Mapping[ShareLocation, str] = {}
    verified: bool = False
    happy: int = 0
    others: bool = False

    @property
    def recoverable(self) -> bool:
        """Whether some version can be read."""
        return bool(self.found.recoverable())

    @property
    def healthy(self) -> bool:
        """Whether exactly one version exists, it can be read, and a good share of every number exists."""
        one = len(self.found.recoverable()) == 1 and not self.found.unrecoverable()
        return one and self.good_count == self.expected

    @property
    def needed(self) -> int:
        """Shares needed to read the version that counts."""
        return self._encoding[0]

    @property
    def expected(self) -> int:
        """Total shares of the version that counts."""
        return self._encoding[1]

    @property
    def good_count(self) -> int:
        """Distinct share numbers of the version that counts."""
        return len(distinct_hosts(self._counted))

    @property
    def sharemap(self) -> Mapping[str, Sequence[ServerId]]:
        """Share names such as `seq3-abcd-sh0`, each with the servers that hold the share."""
        holders: dict[str, list[ServerId]] = {}
        for share in sorted(self.found.sightings, key=lambda share: (share.prefix.order, share.number)):
            holders.setdefault(f"{version_name(share.prefix)}-sh{share.number}", []).append(share.server_id)
        return {name: sorted(servers) for name, servers in holders.items()}

    @property
    def crowded(self) -> bool:
        """Whether too few servers hold a share of their own for the next write to be safe."""
        return self.recoverable and happiness(distinct_hosts(self._counted)) < min(self.happy, self.expected)

    @property
    def can_spread(self) -> bool:
        """Whether too few servers hold the shares, and a repair can store some on others."""
        return self.crowded and self.others

    @property
    def summary(self) -> str:
        """A one-line summary for people."""
        if self.healthy and not self.corrupt:
            reached, wanted = happiness(distinct_hosts(self._counted)), min(self.happy, self.expected)
            return "Healthy" + health.crowding(reached, wanted, can_spread=self.can_spread)
        reasons = []
        if self.found.unrecoverable():
            reasons.append("some versions are unrecoverable")
        recoverable = len(self.found.recoverable())
        if recoverable != 1:
            reasons.append("multiple versions are recoverable" if recoverable else "no versions are recoverable")
        if self.good_count < self.expected:
            reasons.append(f"{self.good_count} shares (enc {self.needed}-of-{self.expected})")
        if self.corrupt:
            names = [f"{server_id.removeprefix('v0-')[:8]}-sh{number}" for server_id, number in sorted(self.corrupt)]
            reasons += ["Corrupt Shares:", *names]
        silent = len(self.found.silent)
        if silent and not self.healthy:
            reasons.append(f"({counted(silent, 'server')} did not answer)")
        return ("Healthy: " if self.healthy else "Unhealthy: ") + " ".join(reasons)

    def to_json(self) -> dict[str, object]:
        """The result in the JSON form of 1.20's web API. [spec placement 9.2]"""
        counted = self._counted
        everything = distinct_hosts(self.found.sightings)
        silent = {"servers-silent": sorted(self.found.silent)} if self.found.silent else {}
        return {
            "storage-index": self.storage_index,
            "summary": self.summary,
            "results": {
                "healthy": self.healthy,
                "recoverable": self.recoverable,
                "count-shares-good": self.good_count,
                "count-shares-needed": self.needed,
                "count-shares-expected": self.expected,
                "count-good-share-hosts": len({share.server_id for share in counted}),
                "count-happiness": happiness(everything),
                "count-recoverable-versions": len(self.found.recoverable()),
                "count-unrecoverable-versions": len(self.found.unrecoverable()),
                "count-wrong-shares": len(self.found.sightings) - len(counted),
                "count-corrupt-shares": len(self.corrupt),
                "list-corrupt-shares": [[server, self.storage_index, share] for server, share in sorted(self.corrupt)],
                "servers-responding": sorted(self.found.answered),
                "sharemap": {name: list(servers) for name, servers in self.sharemap.items()},
                **silent,
                **health.crowding_json(self),
            },
        }

    @property
    def _counted(self) -> Sequence[Sighting]:
        """The shares of the best version or, if none can be read, of the newest."""
        versions = [*self.found.recoverable(), *self.found.unrecoverable()]
        return self.found.shares_of(versions[0]) if versions else ()

    @property
    def _encoding(self) -> tuple[int, int]:
        counted = self._counted
        return (counted[0].prefix.k, counted[0].prefix.n) if counted else UNKNOWN_ENCODING


RepairResult = health.RepairResult[CheckResult]
"""What a repair did."""


def storage_index_text(data: bytes) -> str:
    """A storage index in the form used in results."""
    return encode(data)
