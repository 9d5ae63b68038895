"""A tree of files that is to be copied: names, and where each thing comes from. Pure."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from os import stat_result

from attrs import define, field, frozen

from grid.caps import KnownCap


@frozen(kw_only=True)
class FileFacts:
    """What a local file system says of a file: enough to see that it has changed. Sizes in bytes, times in ns."""

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
        """The facts in an answer of stat."""
        return cls(
            size=status.st_size, mtime_ns=status.st_mtime_ns, ctime_ns=status.st_ctime_ns, mode=status.st_mode,
            inode=status.st_ino, device=status.st_dev, uid=status.st_uid, gid=status.st_gid,
        )  # fmt: skip

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.mode)

    def is_same_content(self, other: FileFacts) -> bool:
        """Whether nothing says that the content differs."""
        mine = (self.size, self.mtime_ns, self.ctime_ns, self.inode, self.device)
        return mine == (other.size, other.mtime_ns, other.ctime_ns, other.inode, other.device)


@frozen(kw_only=True)
class LocalOrigin:
    """A file or directory of this machine; path: absolute."""

    path: str
    facts: FileFacts

    @property
    def shown(self) -> str:
        """How messages name it."""
        return self.path


@frozen(kw_only=True)
class RemoteOrigin:
    """A file or directory of the grid; where: how messages name it, without any capability."""

    cap: KnownCap = field(repr=False)
    where: str
    metadata: Mapping[str, object] = field(factory=dict)

    @property
    def shown(self) -> str:
        """How messages name it."""
        return self.where


Origin = LocalOrigin | RemoteOrigin


@define(eq=False)
class Leaf:
    """A file to be made under this name."""

    name: str
    origin: Origin


@define(eq=False)
class Branch:
    """A directory to be made, or added to, under this name; no leaf has the name of a branch.

    origin: None for one that exists in the plan only.
    """

    name: str
    origin: Origin | None = None
    leaves: dict[str, Leaf] = field(factory=dict)
    branches: dict[str, Branch] = field(factory=dict)

    def walk(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Branch]]:
        """It and all below it, each after its parent, in the order of names, with the names from here."""
        waiting = [(path, self)]
        while waiting:
            here, branch = waiting.pop()
            yield here, branch
            waiting += [((*here, name), branch.branches[name]) for name in sorted(branch.branches, reverse=True)]

    def count(self) -> tuple[int, int]:
        """Files, and directories with this one."""
        branches = [branch for _, branch in self.walk()]
        return sum(len(branch.leaves) for branch in branches), len(branches)
