"""The health of slices and sequences: that of the packs and files that contain them. [spec extents 4]"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from grid.caps import ChkCap, ExtentCap, LitCap, SequenceCap, SliceCap, require_usable
from grid.extents.reader import ExtentReader
from grid.immutable.check import CheckResult
from grid.immutable.repair import RepairResult

CheckChk = Callable[[ChkCap], Awaitable[CheckResult]]
RepairChk = Callable[[ChkCap], Awaitable[RepairResult]]


async def stored_files(cap: ExtentCap, reader: ExtentReader) -> list[ChkCap]:
    """The CHK files needed to read the file, each once; raises the errors of `ExtentReader.table`."""
    require_usable(cap)
    if isinstance(cap, SliceCap):
        return [cap.pack]
    return chk_files_of(cap, (await reader.table(cap)).files())


def chk_files_of(cap: SequenceCap, parts: Iterable[LitCap | ChkCap | SliceCap]) -> list[ChkCap]:
    """The table of a sequence and the files that contain its parts, each once."""
    found = dict.fromkeys([cap.table] if isinstance(cap.table, ChkCap) else [])
    lying = {part.pack if isinstance(part, SliceCap) else part for part in parts if not isinstance(part, LitCap)}
    found |= dict.fromkeys(sorted(lying, key=lambda chk: chk.storage_index))
    return list(found)


async def check_extent(cap: ExtentCap, reader: ExtentReader, check: CheckChk) -> CheckResult:
    """The health of the least healthy file that it needs; raises the errors of `check`."""
    worst: CheckResult | None = None
    for chk in await stored_files(cap, reader):
        worst = _worse(worst, await check(chk))
    return worst or CheckResult(storage_index="")


async def repair_extent(cap: ExtentCap, reader: ExtentReader, repair: RepairChk) -> RepairResult:
    """Repair all files that it needs. before, after: the health of the least healthy one; raises the errors of `repair`."""
    before: CheckResult | None = None
    after: CheckResult | None = None
    attempted, successful = False, True
    for chk in await stored_files(cap, reader):
        result = await repair(chk)
        before, after = _worse(before, result.before), _worse(after, result.after)
        attempted |= result.attempted
        successful &= result.successful or not result.attempted
    literal = CheckResult(storage_index="")
    return RepairResult(
        attempted=attempted, successful=attempted and successful, before=before or literal, after=after or literal
    )


def _worse(one: CheckResult | None, other: CheckResult) -> CheckResult:
    return other if one is None or _rank(other) < _rank(one) else one


def _rank(health: CheckResult) -> tuple[bool, bool, bool, bool, bool, int]:
    is_spread = not health.can_spread, not health.crowded
    return health.recoverable, health.healthy, not health.corrupt, *is_spread, len(health.sharemap)
