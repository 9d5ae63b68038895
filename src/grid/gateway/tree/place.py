"""Where a request's path ends: the object there, if any, and what has or would have the link to it. [spec webapi 4, 5.1]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from attrs import field, frozen

from grid.caps import DirectoryCap, KnownCap
from grid.directory.edits import Edit
from grid.directory.pack import Child


class Parent(Protocol):
    """What links are made in: a directory, or directories that are to be made together with the link."""

    @property
    def is_writable(self) -> bool:
        """Whether links can be made and removed."""

    async def edit(self, edits: Sequence[Edit]) -> Mapping[str, Child]:
        """Make all of the edits, or none; the children replaced or removed, by name. The errors of Directory.edit."""


@frozen(kw_only=True)
class Place:
    """child: what is there, None if nothing is. parent: where it is linked, None for the object of the URL's own cap.

    name: under which it is linked there, in NFC; "" without a parent.
    """

    child: Child | None = field(repr=False)
    parent: Parent | None = field(default=None, repr=False)
    name: str = ""

    @property
    def is_directory(self) -> bool:
        """Whether a directory is there."""
        return self.child is not None and isinstance(self.child.target, DirectoryCap)

    @property
    def mutable_file(self) -> KnownCap | None:
        """The cap of the mutable file that is there; None if it is anything else."""
        target = None if self.child is None else self.child.target
        if isinstance(target, KnownCap) and not isinstance(target, DirectoryCap) and target.is_mutable:
            return target
        return None
