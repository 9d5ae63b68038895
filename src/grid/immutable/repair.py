"""Repairs an immutable file: recreates missing and corrupt shares and stores them on other servers.

It needs only the verify cap. It reads ciphertext, encodes it again, and compares the result with the original's roots before
it finishes a new share. The original extension block is stored byte for byte. [spec immutable 15; placement 10]

Cost: a verification, a read of the file, and a put of the missing shares. Memory: that of the read and the put together.
"""

from __future__ import annotations

from attrs import evolve

from grid.caps import ChkCap, ChkVerifyCap, LitCap, StorageIndex
from grid.engine.grid import Grid
from grid.errors import GridError
from grid.immutable.check import CheckResult, check
from grid.immutable.get import ImmutableFile
from grid.immutable.perform import Performer
from grid.immutable.put import NothingPlacedError, push
from grid.immutable.share.encode import Encoder
from grid.placement import health
from grid.placement.order import permute
from grid.ports import Buffer, ServerId, ShareNumber, ignore_events
from grid.sinks import BytesSink

RepairResult = health.RepairResult[CheckResult]
"""What a repair did."""


class CiphertextSource:
    """The ciphertext of a file, read from its shares and proven."""

    def __init__(self, file: ImmutableFile) -> None:
        self._file = file

    @property
    def size(self) -> int:
        """Bytes of the ciphertext."""
        return self._file.size

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Exactly those bytes."""
        sink = BytesSink()
        await self._file.read(sink, offset, length)
        return sink.data


async def repair(cap: ChkCap | ChkVerifyCap | LitCap, grid: Grid) -> RepairResult:
    """Verify a file and, if it is not healthy but recoverable, restore its missing and corrupt shares.

    If fewer than `happy` servers hold a share of their own, other servers get shares as well.

    Every byte of every share is verified first, so that a share that a server only claims to hold, or holds
    corrupt, is replaced too. NoServersError, DamagedFileError as in check. An unrecoverable file is a result, not an error.
    """
    before = await check(cap, grid, verify=True)
    if isinstance(cap, LitCap) or (before.healthy and not before.can_spread):
        return RepairResult(attempted=False, successful=False, before=before, after=before)
    if not before.recoverable:
        return RepairResult(attempted=True, successful=False, before=before, after=before)
    verify_cap = cap.verify_cap() if isinstance(cap, ChkCap) else cap
    placed = await _replace(verify_cap, before, grid)
    sharemap = {share: list(holders) for share, holders in before.sharemap.items()}
    for server_id, shares in placed.items():
        for share in shares:
            sharemap.setdefault(share, []).append(server_id)
    after = evolve(before, sharemap={share: sorted(sharemap[share]) for share in sorted(sharemap)})
    return RepairResult(attempted=True, successful=after.healthy, before=before, after=after)


async def _replace(cap: ChkVerifyCap, before: CheckResult, grid: Grid) -> dict[ServerId, frozenset[ShareNumber]]:
    """Store the missing shares. Returns the new shares of each server."""
    file = ImmutableFile(cap, grid.observed_by(ignore_events))
    source = CiphertextSource(file)
    await source.read_at(0, 1)
    verifier = file.verifier
    if verifier is None or verifier.geometry is None:
        raise GridError("the file's extension block is not proven")
    encoder = Encoder(verifier.geometry, None)
    index = StorageIndex(cap.storage_index)
    ordered = permute(grid.permitted(), index)
    performer = Performer(
        ordered,
        index,
        grid.runtime,
        leases=grid.leases,
        source=source,
        encoder=encoder,
        original_ueb=verifier.ueb_bytes,
    )
    existing: dict[ServerId, set[ShareNumber]] = {}
    for share, holders in before.sharemap.items():
        for server_id in holders:
            existing.setdefault(server_id, set()).add(share)
    try:
        selection, pushed = await push(encoder, performer, ordered, 0, grid, existing=existing)
    except NothingPlacedError:
        return {}
    return {
        server_id: frozenset(share for share in shares if server_id in pushed.sharemap.get(share, ()))
        for server_id, shares in selection.placed.items()
    }
