"""The interface of a store of files and directories, whether it is in this process or behind a gateway.

FileStore, Directory and MutableFile implement it in this process; grid.cli.webapi implements it over a gateway.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from grid.caps import ChkCap, DirectoryCap, KnownCap, LitCap
from grid.directory.edits import Edit, Overwrite
from grid.directory.pack import Child
from grid.ports import Buffer, Runtime, Sink, Source
from grid.values import field, frozen

if TYPE_CHECKING:
    # Reading an immutable file loads this module, but nothing of mutable files.
    from grid.crypto.rsa import PrivateKey
    from grid.mutable.share.geometry import FormatName
    from grid.mutable.share.keys import WriteCap


@frozen(kw_only=True)
class Trail:
    """A directory and the path to it. directories: from the root to the directory itself.

    names: of the links between them, in normal form. A directory given by its capability is its own root.
    """

    directories: tuple[DirectoryCap, ...] = field(repr=False)
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, cap: DirectoryCap) -> Trail:
        """The trail of a directory that is given by its capability."""
        return cls(directories=(cap,))

    @property
    def end(self) -> DirectoryCap:
        """The directory."""
        return self.directories[-1]

    def below(self, name: str, cap: DirectoryCap) -> Trail:
        """The trail one link further."""
        return Trail(directories=(*self.directories, cap), names=(*self.names, name))


class Health(Protocol):
    """The result of a check. storage_index: base32, empty for a literal file. corrupt: (server, share number)."""

    @property
    def storage_index(self) -> str: ...

    @property
    def healthy(self) -> bool: ...

    @property
    def recoverable(self) -> bool: ...

    @property
    def corrupt(self) -> Collection[tuple[str, int]]: ...

    @property
    def crowded(self) -> bool:
        """Whether too few servers hold a share of their own."""

    @property
    def can_spread(self) -> bool:
        """Whether that is so, and a repair can store shares on others."""

    @property
    def summary(self) -> str: ...

    def to_json(self) -> dict[str, object]:
        """The CHECK object of [spec webapi 6.2]."""


class RepairResult(Protocol):
    """The result of a repair. attempted: it was not healthy. successful: it is now. before, after: the health then and now."""

    @property
    def attempted(self) -> bool: ...

    @property
    def successful(self) -> bool: ...

    @property
    def before(self) -> Health: ...

    @property
    def after(self) -> Health: ...

    def to_json(self) -> dict[str, object]:
        """The CHECK-AND-REPAIR object of [spec webapi 6.3]."""


class OpenFile(Protocol):
    """A mutable file."""

    async def size(self) -> int:
        """Size of the newest readable version in bytes."""

    async def overwrite(self, contents: Buffer | Source) -> None:
        """Replace the contents. AuthorityError without the write cap."""


class OpenDirectory(Protocol):
    """A directory, open for what its capability permits; the errors are those of `Directory`."""

    @property
    def cap(self) -> DirectoryCap: ...

    @property
    def is_writable(self) -> bool: ...

    async def list(self) -> Mapping[str, Child]:
        """The children that can be listed, in ascending order of their names."""

    async def listing(self) -> tuple[Mapping[str, Child], int]:
        """The result of `list`, and its size in bytes."""

    async def get(self, path: Sequence[str]) -> Child:
        """The child at the end of a path; for an empty path, this directory."""

    async def edit(self, edits: Sequence[Edit]) -> Mapping[str, Child] | None:
        """Make all edits. Returns the children replaced or removed, by name, or None if unknown."""

    async def make_directories(self, path: Sequence[str], *, format: FormatName | None = None) -> OpenDirectory:
        """The directory at the end of a path; missing ones are made."""


class Store(Protocol):
    """A client's view of a grid; the errors are those of `FileStore`."""

    @property
    def runtime(self) -> Runtime: ...

    @property
    def convergence(self) -> bytes | None:
        """The secret that gives equal files equal capabilities; None if they must differ, or if it is not known here."""

    async def put_immutable(self, source: Source, *, segment_size: int | None = None) -> ChkCap | LitCap:
        """Store an immutable file. segment_size: most bytes of a segment, if the store can choose it."""

    async def put_mutable(
        self, source: Source | Buffer, *, format: FormatName | None = None, key: PrivateKey | None = None
    ) -> WriteCap:
        """Store a new mutable file."""

    def open_mutable(self, cap: KnownCap) -> OpenFile:
        """The mutable file of this cap."""

    async def read(self, cap: KnownCap, sink: Sink, offset: int = 0, length: int | None = None) -> int:
        """Write bytes of a file to the sink, and return the byte count."""

    async def size(self, cap: KnownCap) -> int:
        """Size of a file in bytes."""

    async def check(self, cap: KnownCap, *, verify: bool = False, add_lease: bool = False) -> Health:
        """Check the health of a file or directory."""

    async def repair(self, cap: KnownCap, *, force: bool = False) -> RepairResult:
        """Verify and repair a file or directory."""

    def directory(self, cap: DirectoryCap) -> OpenDirectory:
        """The directory of this cap."""

    async def create_directory(
        self, children: Mapping[str, Child] | None = None, *, format: FormatName | None = None
    ) -> DirectoryCap:
        """Store a new mutable directory with these children."""

    async def create_immutable_directory(self, children: Mapping[str, Child]) -> DirectoryCap:
        """Store a directory that never changes."""

    async def move(
        self, source: Trail, name: str, target: Trail, new_name: str, *, overwrite: Overwrite = True
    ) -> Child | None:
        """Move or rename a link. Returns the child that it replaced, if known. Raises the errors of `grid.directory.moving.move`."""
