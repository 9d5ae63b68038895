"""Removes a bucket while other gateways may store objects in it: the bucket stays, or those puts are refused.

A removal has a number. It is written to the metadata of the link that makes a directory a bucket, and then, as a mark,
into each directory of the bucket. Each directory is read after it is marked. The link is removed only while it has the
number. A put whose directory is marked takes the number from the link first, which ends that removal; if there is no
link any more, the put is refused. [docs/decisions/0357-deleted-buckets.md]

Cost: a publish and a read of each directory of the bucket, and two publishes of the directory of buckets. A put: nothing,
except a read for each directory that it makes; where a removal was cut off, two publishes for each of its marks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from grid.caps import DirectoryCap, LitCap
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.node import Look
from grid.directory.pack import Child
from grid.s3.faults import S3Fault
from grid.s3.lifetimes import BucketLink
from grid.s3.listing import MOST_DIRECTORIES, Lister, Query
from grid.s3.names import MARK

FIELD = "s3-removal"
"""Where the metadata of a bucket's link has the number of its removal."""

MOST_ATTEMPTS = 10
"""Removals that a put ends before it gives up."""

Edits = Sequence[SetChild | RemoveChild]

R = TypeVar("R")


class MarkedError(S3Fault):
    """A removal of the bucket has marked the directory. number: of the removal; "" if the mark is damaged."""

    def __init__(self, directory: DirectoryCap, number: str) -> None:
        super().__init__("ConditionalRequestConflict")
        self.directory = directory
        self.number = number


def require_unmarked(directory: DirectoryCap, mark: Child | None) -> None:
    """Raise MarkedError if there is a mark in the directory."""
    if mark is not None:
        raise MarkedError(directory, _marked_by(mark))


async def storing(link: BucketLink, work: Callable[[], Awaitable[R]]) -> R:
    """Do the work; if it meets a mark, end that removal and do it again. NoSuchBucket if the bucket is removed.

    Also raises what the work raises.
    """
    for _ in range(MOST_ATTEMPTS):
        try:
            return await work()
        except MarkedError as marked:
            directory, number = marked.directory, marked.number
        if not await _withdraw(link, number):
            raise S3Fault("NoSuchBucket")
        await _unmark(link, directory, number)
    raise S3Fault("ConditionalRequestConflict")


async def remove_bucket(link: BucketLink, lister: Lister, number: str) -> None:
    """Remove an empty bucket, durably. number: random. BucketNotEmpty; also raises the errors of a change."""
    await _require_empty(link, lister)
    async with link.lifetime.alone():
        await _require_empty(link, lister)
        link.lifetime.is_doubtful = True
        marked: list[DirectoryCap] = []
        try:
            if await _number_link(link, number) and await _mark_all(link, lister, number, marked):
                await _unlink(link, number)
            return
        except S3Fault as fault:
            refusal = fault
        await _withdraw(link, number)
        for directory in marked:
            await _unmark(link, directory, number)
        raise refusal


async def _require_empty(link: BucketLink, lister: Lister) -> None:
    """Raise BucketNotEmpty if the bucket has an object, or too many directories to search."""
    page = await lister.page(link.root, Query(most=1))
    if page.entries:
        raise S3Fault("BucketNotEmpty")
    if page.next is not None:
        raise _too_many()


def _too_many() -> S3Fault:
    return S3Fault("BucketNotEmpty", "The bucket has too many empty directories to search.")


async def _number_link(link: BucketLink, number: str) -> bool:
    """Write the number to the link, in place of any other; False if the bucket is gone."""

    def decide(here: Child) -> Edits:
        return (SetChild(link.name, link.root, {**(here.metadata or {}), FIELD: number}),)

    return await _change_link(link, decide)


async def _mark_all(link: BucketLink, lister: Lister, number: str, marked: list[DirectoryCap]) -> bool:
    """Mark each directory, and read it then; False if another removal was first. BucketNotEmpty."""
    found = [link.root]
    seen = set(found)
    while found:
        directory = found.pop()
        marked.append(directory)
        if len(marked) > MOST_DIRECTORIES:
            raise _too_many()
        if not await _mark(link, directory, number):
            return False
        entries = await lister.entries(directory)
        for index in range(len(entries.names)):
            inside = entries.at(index)
            if not isinstance(inside, DirectoryCap):
                raise S3Fault("BucketNotEmpty")
            if inside.authority == "write" and inside not in seen:
                seen.add(inside)
                found.append(inside)
    return True


async def _mark(link: BucketLink, directory: DirectoryCap, number: str) -> bool:
    """Mark a directory; False if the bucket is gone. BucketNotEmpty if a later removal has begun, or a put ended this one."""
    over: set[str] = {number}

    def decide(look: Look, retrying: bool) -> Edits:
        here = look(MARK)
        if here is not None and _marked_by(here) not in over:
            raise MarkedError(directory, _marked_by(here))
        return (SetChild(MARK, LitCap(data=number.encode()), {}),)

    for _ in range(MOST_ATTEMPTS):
        try:
            await link.directories.change(directory, decide)
            return True
        except MarkedError as marked:
            other = marked.number
        here = (await link.directories.read(link.home)).get(link.name)
        if not _leads_to_bucket(link, here):
            return False
        if _number_of(here) != number:
            raise _ended()
        # The link had the other number before it had ours, and nobody writes a number twice.
        over.add(other)
    raise _ended()


async def _unlink(link: BucketLink, number: str) -> None:
    def decide(here: Child) -> Edits:
        if _number_of(here) != number:
            raise _ended()
        return (RemoveChild(link.name, must_exist=False, only=link.root),)

    await _change_link(link, decide)


async def _withdraw(link: BucketLink, number: str) -> bool:
    """Take the number from the link, so that its removal fails; False if the bucket is gone."""

    def decide(here: Child) -> Edits:
        if _number_of(here) != number:
            return ()
        kept = {key: value for key, value in (here.metadata or {}).items() if key != FIELD}
        return (SetChild(link.name, link.root, kept),)

    return await _change_link(link, decide)


async def _unmark(link: BucketLink, directory: DirectoryCap, number: str) -> None:
    def decide(look: Look, retrying: bool) -> Edits:
        here = look(MARK)
        return (RemoveChild(MARK, must_exist=False),) if here is not None and _marked_by(here) == number else ()

    await link.directories.change(directory, decide)


async def _change_link(link: BucketLink, decide: Callable[[Child], Edits]) -> bool:
    """Change the bucket's link by what it is; False if it is gone."""
    is_there = False

    def decide_if_there(look: Look, retrying: bool) -> Edits:
        nonlocal is_there
        here = look(link.name)
        is_there = here is not None and _leads_to_bucket(link, here)
        return decide(here) if here is not None and is_there else ()

    await link.directories.change(link.home, decide_if_there)
    return is_there


def _leads_to_bucket(link: BucketLink, here: Child | None) -> bool:
    return here is not None and here.target == link.root


def _number_of(here: Child | None) -> str | None:
    found = ((here.metadata if here is not None else None) or {}).get(FIELD)
    return found if isinstance(found, str) else None


def _marked_by(mark: Child) -> str:
    return mark.target.data.decode("ascii", "replace") if isinstance(mark.target, LitCap) else ""


def _ended() -> S3Fault:
    return S3Fault("BucketNotEmpty", "Another gateway stores an object in the bucket, or deletes it too.")
