"""Fills an incomplete file at a target, and resumes after an interruption: on local disks and SFTP servers.

It owns which ranges are missing, when a range counts as written, and which incomplete files wait for the next attempt.
[decision 355]
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from grid.ports import Buffer
from grid.transfer.choices import may_pass
from grid.transfer.digest import BLOCK
from grid.transfer.ends import Body, EndError, KeptPart, NoParts, PassingError, SourceChangedError, first_error

PART_SIZE = 8 * 2**20
"""Bytes after which a range is recorded: what an interruption costs, for each range that is fetched in parallel."""

MOST_STREAMS = 64
"""Ranges that wait for their turn at most, whatever size a file announces: as many as a body may fetch at once."""

Range = tuple[int, int]
"""Offset and length."""

E = TypeVar("E", bound=BaseException)


class PartialFile(Protocol):
    """An incomplete file at a target."""

    @property
    def scratch(self) -> str:
        """Its name below the target's mark of incomplete files; the token of its parts."""

    @property
    def is_new(self) -> bool:
        """Whether it holds nothing of an earlier attempt."""

    async def holds(self, part: KeptPart, body: Body) -> bool:
        """Whether the part is still there, as it was recorded."""

    async def write(self, offset: int, piece: Buffer) -> None:
        """Write bytes in place."""

    async def sync(self) -> bool:
        """Make what was written last; return whether `holds` may be believed later."""


def missing(wanted: Iterable[Range], held: Iterable[Range]) -> Iterator[Range]:
    """Yield what is left of the wanted ranges without those that are held. Cost: a search in those held for each wanted one."""
    begins, ends = list[int](), list[int]()
    for begin, length in sorted(held):
        if ends and begin <= ends[-1]:
            ends[-1] = max(ends[-1], begin + length)
        else:
            begins.append(begin)
            ends.append(begin + length)
    for offset, size in wanted:
        end = offset + size
        for index in range(bisect_right(ends, offset), bisect_left(begins, end)):
            if offset < begins[index]:
                yield offset, begins[index] - offset
            offset = ends[index]
        if offset < end:
            yield offset, end - offset


async def held_parts(file: PartialFile, body: Body) -> list[KeptPart]:
    """The recorded parts that the file still holds; the others are dropped. JournalError."""
    recorded = body.parts.load()
    known = [part for part in recorded if not file.is_new and part.token == file.scratch]
    held = [part for part in known if await file.holds(part, body)]
    if len(held) != len(recorded):
        body.parts.forget()
        for part in held:
            body.parts.keep(part)
    return held


async def fill(file: PartialFile, body: Body, held: Sequence[KeptPart], *, in_order: bool = False) -> None:
    """Write what is missing, and record each range once it is written. Raises the errors of reading and writing.

    held: parts of earlier attempts. in_order: read no ranges in parallel.
    """
    try:
        ranges = [] if in_order else body.ranges()
        if ranges:
            await _fill_ranges(file, body, ranges, held)
        else:
            await _fill_in_order(file, body, held)
    except BaseExceptionGroup as errors:
        raise of_resumed(first_error(errors), held) from None
    except EndError as error:
        raise of_resumed(error, held) from None


def can_resume(body: Body, error: BaseException) -> bool:
    """Whether the incomplete file is of use to a later attempt. JournalError."""
    if isinstance(error, SourceChangedError) or not body.parts.load():
        return False
    return not isinstance(error, Exception) or may_pass(error)


def of_resumed(error: E, held: Collection[object]) -> E | SourceChangedError:
    """The error of a source. What failed because it was not read from its start may pass when it is.

    held: what was not read again.
    """
    if held and isinstance(error, EndError) and not isinstance(error, PassingError):
        return SourceChangedError(f"{error}; starting over")
    return error


async def _fill_ranges(file: PartialFile, body: Body, ranges: Sequence[Range], held: Sequence[KeptPart]) -> None:
    for part in held:
        body.resume(part)
    left = missing(ranges, [(part.offset, part.length) for part in held])

    async def work() -> None:
        for offset, length in left:
            await _write(file, body, offset, body.fetch(offset, length))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(len(ranges), MOST_STREAMS)):
            group.create_task(work())


async def _fill_in_order(file: PartialFile, body: Body, held: Sequence[KeptPart]) -> None:
    position = 0
    for part in sorted(held, key=lambda part: part.offset):
        if part.offset == position:
            body.resume(part)
            position += part.length
    await _write(file, body, position, body.stream(position))


async def _write(file: PartialFile, body: Body, begin: int, pieces: AsyncIterator[Buffer]) -> None:
    offset = begin
    async for piece in pieces:
        await file.write(offset, piece)
        offset += len(piece)
        whole = offset // BLOCK * BLOCK
        if whole - begin >= PART_SIZE:
            await _keep(file, body, begin, whole - begin)
            begin = whole
    if offset > begin:
        await _keep(file, body, begin, offset - begin)


async def _keep(file: PartialFile, body: Body, offset: int, length: int) -> None:
    if not isinstance(body.parts, NoParts) and await file.sync():
        digest = body.digests(offset, length)
        body.parts.keep(KeptPart(offset=offset, length=length, token=file.scratch, digest=digest))
