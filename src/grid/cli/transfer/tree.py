"""A tree of files to copy: names, and the origin of each entry. Pure."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from os import stat_result

from grid.caps import KnownCap
from grid.values import define, field, frozen


@frozen(kw_only=True)
class FileFacts:
    """A local file's stat fields, enough to see that it changed. Sizes in bytes, times in nanoseconds."""

    size: int
    mtime_ns: int
    ctime_ns: int
    mode: int
    inode: int
    device: int
    uid: int
    gid: int

    @classmethod
    def of(cls, status: stat_result) -> FileFacts:
        """Take the facts from a stat result."""
        return cls(
            size=status.st_size, mtime_ns=status.st_mtime_ns, ctime_ns=status.st_ctime_ns, mode=status.st_mode,
            inode=status.st_ino, device=status.st_dev, uid=status.st_uid, gid=status.st_gid,
        )  # fmt: skip

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.mode)

    def is_same_content(self, other: FileFacts) -> bool:
        """Whether nothing suggests that the contents differ."""
        mine = (self.size, self.mtime_ns, self.ctime_ns, self.inode, self.device)
        return mine == (other.size, other.mtime_ns, other.ctime_ns, other.inode, other.device)


@frozen(kw_only=True)
class LocalOrigin:
    """A local file or directory. path: absolute."""

    path: str
    facts: FileFacts

    @property
    def shown(self) -> str:
        """Its name in messages."""
        return self.path


@frozen(kw_only=True)
class RemoteOrigin:
    """A file or directory of the grid. where: its name in messages, without any capability."""

    cap: KnownCap = field(repr=False)
    where: str
    metadata: Mapping[str, object] = field(factory=dict)

    @property
    def shown(self) -> str:
        """Its name in messages."""
        return self.where


Origin = LocalOrigin | RemoteOrigin


@define(eq=False)
class Leaf:
    """A file to create under this name."""

    name: str
    origin: Origin


@define(eq=False)
class Branch:
    """A directory to create or add to under this name. No leaf has the name of a branch.

    origin: None for one that exists only in the plan.
    """

    name: str
    origin: Origin | None = None
    leaves: dict[str, Leaf] = field(factory=dict)
    branches: dict[str, Branch] = field(factory=dict)

    def walk(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Branch]]:
        """Yield this and all branches below, parents first, sorted by name, each with its path from here."""
        waiting = [(path, self)]
        while waiting:
            here, branch = waiting.pop()
            yield here, branch
            waiting += [((*here, name), branch.branches[name]) for name in sorted(branch.branches, reverse=True)]

    def count(self) -> tuple[int, int]:
        """The number of files, and of directories including this one."""
        branches = [branch for _, branch in self.walk()]
        return sum(len(branch.leaves) for branch in branches), len(branches)
