"""Checks an immutable file: which shares exist and, on request, whether every byte of them is right.

The driver of the check plan, and the result as users and programs see it. [spec placement 9.1]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import evolve

from grid.caps import ChkCap, ChkVerifyCap, LitCap, StorageIndex, require_usable
from grid.codec.base32 import encode
from grid.drive import drive
from grid.engine.grid import Grid
from grid.errors import FormatError, NoServersError
from grid.immutable.perform import Performer
from grid.immutable.read.check_plan import CheckPlan, Findings
from grid.immutable.share.audit import Verdict
from grid.immutable.share.layout import guess
from grid.immutable.share.requests import ASKING_KINDS, READ_KINDS
from grid.immutable.share.verify import FileVerifier
from grid.placement import health
from grid.placement.happiness import happiness
from grid.placement.order import permute
from grid.placement.space import may_take
from grid.plural import counted
from grid.ports import ServerId, ShareNumber
from grid.values import frozen


@frozen(kw_only=True)
class CheckResult:
    """What a check found. storage_index: base32, empty for a literal file.

    sharemap: share number to the servers with a good one. corrupt: (server, share number) that failed
    verification, or that the server's disk does not give, with reasons. incompatible: shares of a version that this code does not know. responding: servers that
    answered. silent: servers that the check gave up on; it does not know what they hold. verified: whether all bytes of
    the shares were read. happy: how many servers must each hold a share of their own for the file to be safe.
    able: the servers that answered and may take a new share: permitted, and not known to lack the room.
    """

    storage_index: str
    needed: int = 0
    expected: int = 0
    sharemap: Mapping[ShareNumber, Sequence[ServerId]] = {}
    corrupt: Mapping[tuple[ServerId, ShareNumber], str] = {}
    incompatible: Sequence[tuple[ServerId, ShareNumber]] = ()
    responding: Sequence[ServerId] = ()
    silent: Sequence[ServerId] = ()
    verified: bool = False
    happy: int = 0
    able: Collection[ServerId] = ()

    @property
    def literal(self) -> bool:
        """Whether the capability itself contains the file, so that there are no shares."""
        return not self.storage_index

    @property
    def healthy(self) -> bool:
        """Whether a good share of every number exists."""
        return self.literal or len(self.sharemap) == self.expected

    @property
    def recoverable(self) -> bool:
        """Whether the file can be read."""
        return self.literal or len(self.sharemap) >= self.needed

    @property
    def happiness(self) -> int:
        """How many servers each hold a good share of their own."""
        return happiness({share: set(holders) for share, holders in self.sharemap.items()})

    @property
    def crowded(self) -> bool:
        """Whether too few servers hold a share of their own for the file to be safe."""
        return not self.literal and self.happiness < min(self.happy, self.expected)

    @property
    def can_spread(self) -> bool:
        """Whether too few servers hold the shares, and a repair can store some on others."""
        if not self.crowded:
            return False
        numbers = map(ShareNumber, range(self.expected))
        return happiness({number: {*self.sharemap.get(number, ()), *self.able} for number in numbers}) > self.happiness

    @property
    def summary(self) -> str:
        """A one-line summary for people."""
        if self.literal:
            return "Healthy (LIT)"
        if self.healthy:
            return "Healthy" + health.crowding(
                self.happiness, min(self.happy, self.expected), can_spread=self.can_spread
            )
        return f"Not Healthy: {len(self.sharemap)} shares (enc {self.needed}-of-{self.expected})"

    def to_json(self) -> dict[str, object]:
        """The result in the JSON form of 1.20's web API. [spec placement 9.1]"""
        if self.literal:
            return {"storage-index": "", "results": {"healthy": True}}
        hosts = {server_id for holders in self.sharemap.values() for server_id in holders}
        # A key that 1.20 does not have, present only if there is something to report. Programs written for 1.20 see the keys they know.
        silent = {"servers-silent": sorted(self.silent)} if self.silent else {}
        return {
            "storage-index": self.storage_index,
            "summary": self.summary,
            "results": {
                "healthy": self.healthy,
                "recoverable": self.recoverable,
                "count-shares-good": len(self.sharemap),
                "count-shares-needed": self.needed,
                "count-shares-expected": self.expected,
                "count-good-share-hosts": len(hosts),
                "count-happiness": self.happiness,
                "count-recoverable-versions": int(self.recoverable),
                "count-unrecoverable-versions": int(not self.recoverable),
                "count-wrong-shares": 0,
                "count-corrupt-shares": len(self.corrupt),
                "list-corrupt-shares": [[server, self.storage_index, share] for server, share in sorted(self.corrupt)],
                "servers-responding": sorted(self.responding),
                "sharemap": {str(share): sorted(holders) for share, holders in sorted(self.sharemap.items())},
                **silent,
                **health.crowding_json(self),
            },
        }


async def check(
    cap: ChkCap | ChkVerifyCap | LitCap,
    grid: Grid,
    *,
    verify: bool = False,
    add_lease: bool = False,
) -> CheckResult:
    """Check a file's health. verify: read every byte of every share; add_lease: add or renew our lease on every server.

    NoServersError if no server answered. CapError if no file can have the capability's numbers. DamagedFileError if the file was
    damaged when it was uploaded.
    """
    if isinstance(cap, LitCap):
        return CheckResult(storage_index="")
    require_usable(cap)
    index = StorageIndex(cap.storage_index)
    ordered = permute(grid.servers, index)
    verifier = FileVerifier(cap.ueb_hash, cap.size, cap.needed, cap.total) if verify else None
    ids = [server.identity.server_id for server in ordered]
    kinds = (*ASKING_KINDS, *READ_KINDS) if verify else ASKING_KINDS
    in_doubt = [server_id for server_id in ids if grid.memory.is_doubtful_for_any(server_id, kinds)]
    plan = CheckPlan(ids, n=cap.total, verifier=verifier, add_lease=add_lease, in_doubt=in_doubt)
    findings = await drive(plan, Performer(ordered, index, grid.runtime, leases=grid.leases), grid)
    if not findings.responding:
        raise NoServersError(
            f"none of {counted(len(ids), 'server')} could be reached"
            if ids
            else "no storage server is known; is the introducer reachable?"
        )
    size = _share_size(cap, grid)
    roomy = {server.identity.server_id for server in grid.permitted() if may_take(server, size)}
    found = _summarize(findings, encode(cap.storage_index), cap.needed, cap.total, verify)
    return evolve(found, happy=grid.encoding.happy, able=roomy & set(findings.responding))


def _share_size(cap: ChkCap | ChkVerifyCap, grid: Grid) -> int:
    """Bytes of a share, if the file was written with this grid's segment size; 1 if no file can have the capability."""
    try:
        return guess(cap.size, cap.needed, cap.total, grid.encoding.max_segment_size).share_size
    except FormatError:
        return 1


def _summarize(findings: Findings, storage_index: str, needed: int, total: int, verified: bool) -> CheckResult:
    sharemap: dict[ShareNumber, list[ServerId]] = {}
    for server_id, numbers in findings.claimed.items():
        for number in numbers:
            if not verified or findings.audits[server_id, number][0] is Verdict.GOOD:
                sharemap.setdefault(number, []).append(server_id)
    return CheckResult(
        storage_index=storage_index,
        needed=needed,
        expected=total,
        sharemap={number: sorted(sharemap[number]) for number in sorted(sharemap)},
        corrupt={key: reason for key, (verdict, reason) in findings.audits.items() if verdict is Verdict.CORRUPT}
        | dict(findings.unread),
        incompatible=[key for key, (verdict, _) in findings.audits.items() if verdict is Verdict.INCOMPATIBLE],
        responding=sorted(findings.responding),
        silent=sorted(findings.silent),
        verified=verified,
    )
