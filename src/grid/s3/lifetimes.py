"""Lifetimes of buckets: no put is acknowledged into a bucket that was deleted meanwhile.

Requests of one door that use the same bucket share its lifetime. Changes hold it together, a removal alone; a change
that finds a removal ahead of it asks the directory of buckets whether the bucket is still there. What other gateways do
meanwhile is up to grid.s3.removal.

Cost: nothing; a change that a removal overtook: a read of the directory of buckets.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from grid.caps import DirectoryCap
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.gathering import Directories
from grid.directory.node import Look
from grid.read_write_locks import ReadWriteLocks
from grid.s3.faults import S3Fault
from grid.values import define, field


@define(eq=False)
class Lifetime:
    """Of one bucket. is_doubtful: whether a removal has begun."""

    is_doubtful: bool = False
    _locks: ReadWriteLocks = field(factory=ReadWriteLocks)

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """While this is held, no removal begins."""
        async with self._locks.shared(self, refusable=False):
            yield

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """While this is held, nothing is stored in the bucket."""
        async with self._locks.exclusive(self, refusable=False):
            yield


@define(eq=False)
class Lifetimes:
    """The lifetimes of all buckets in use."""

    _known: WeakValueDictionary[DirectoryCap, Lifetime] = field(factory=WeakValueDictionary)

    def of(self, root: DirectoryCap) -> Lifetime:
        """The lifetime of the bucket with this directory."""
        found = self._known.get(root)
        if found is None:
            found = self._known[root] = Lifetime()
        return found


@define(eq=False)
class BucketLink:
    """The link that makes a directory a bucket. home: where it is."""

    name: str
    root: DirectoryCap = field(repr=False)
    home: DirectoryCap = field(repr=False)
    directories: Directories
    lifetime: Lifetime

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """While this is held, the bucket stays. NoSuchBucket; also raises the errors of a change."""
        async with self.lifetime.shared():
            if self.lifetime.is_doubtful:
                # A change that changes nothing waits for a removal that is still being published.
                await self.directories.change(self.home, self._require)
            yield

    def _require(self, look: Look, retrying: bool) -> Sequence[SetChild | RemoveChild]:
        here = look(self.name)
        if here is None or here.target != self.root:
            raise S3Fault("NoSuchBucket")
        return ()
