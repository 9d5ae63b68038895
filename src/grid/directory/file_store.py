"""Files and directories of every kind in one store: store, open, read, check and repair by capability.

It owns which engine handles a capability, and ensures that a mutable file in use has one object.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import Enum
from weakref import WeakValueDictionary

from attrs import evolve, field

from grid.caps import (
    ChkCap,
    ChkVerifyCap,
    DirectoryCap,
    ImmutableFileCap,
    KnownCap,
    LitCap,
    SequenceCap,
    SliceCap,
    require_usable,
)
from grid.crypto.rsa import PrivateKey
from grid.directory.edits import Overwrite
from grid.directory.moving import move
from grid.directory.names import normalize_name
from grid.directory.node import Directory
from grid.directory.pack import Child, make_entry, pack_directory
from grid.directory.parsed import ParsedDirectories
from grid.directory.store import Trail
from grid.directory.unpacking import UnpackingBudget
from grid.engine.grid import Grid
from grid.errors import AuthorityError, CapError
from grid.extents.files import OpenChkFiles
from grid.extents.health import check_extent, repair_extent
from grid.extents.reader import ExtentReader
from grid.immutable import check as immutable_check
from grid.immutable import repair as immutable_repair
from grid.immutable.get import ImmutableFile
from grid.immutable.put import Keeps, put
from grid.mutable.create import create_mutable
from grid.mutable.key_supply import new_key
from grid.mutable.node import MutableFile
from grid.mutable.share import health
from grid.mutable.share.geometry import MDMF_VERSION, SDMF_VERSION, FormatName
from grid.mutable.share.keys import WriteCap, write_cap
from grid.mutable.sources import MemorySource
from grid.ports import Buffer, Observer, Runtime, Sink, Source, StorageServer
from grid.runtime import run_sized
from grid.values import frozen

FileHealth = immutable_check.CheckResult | health.CheckResult
"""What a check finds; both kinds have storage_index, healthy, recoverable, corrupt, summary and to_json()."""

FileRepair = immutable_repair.RepairResult | health.RepairResult
"""What a repair did; both kinds have attempted, successful, before, after and to_json()."""

KEPT_OPEN = 64
"""Mutable files that stay open although nobody holds them. Each remembers at most a megabyte of contents."""


class Keep(Enum):
    """Stands for the grid's own setting."""

    KEEP = "keep"


KEEP = Keep.KEEP


Permit = Callable[[KnownCap], None]
"""Raises if the capability may not be used."""


def permit_all(cap: KnownCap) -> None:
    """Permit everything."""


class _OpenFiles:
    """The mutable files in use, and the last few that were in use. All are opened anew once the grid has other servers."""

    def __init__(self) -> None:
        self._servers: tuple[StorageServer, ...] = ()
        self._all: WeakValueDictionary[KnownCap, MutableFile] = WeakValueDictionary()
        self._last: OrderedDict[KnownCap, MutableFile] = OrderedDict()

    def get(self, cap: KnownCap, servers: tuple[StorageServer, ...]) -> MutableFile | None:
        """The file, if it is open and uses these servers."""
        if servers != self._servers:
            self._servers = servers
            self._all.clear()
            self._last.clear()
        file = self._all.get(cap)
        if file is not None:
            self.put(cap, file)
        return file

    def put(self, cap: KnownCap, file: MutableFile) -> None:
        """Keep the file as the one used last."""
        self._all[cap] = self._last[cap] = file
        self._last.move_to_end(cap)
        if len(self._last) > KEPT_OPEN:
            self._last.popitem(last=False)


@frozen(kw_only=True, eq=False)
class NewDirectory:
    """A new mutable directory: the bytes of its file, and the key that the file will have."""

    data: bytes = field(repr=False)
    format: FormatName
    key: PrivateKey = field(repr=False)


@frozen(kw_only=True, eq=False)
class FileStore:
    """The files and directories of a grid.

    mutable_format: of new mutable files and directories. room: for directories being unpacked, and parsed: those that are
    kept, both of the whole process. permit: called before anything is read, checked or changed, however its capability was
    found; what it raises is raised by the method that was called.
    """

    grid: Grid
    mutable_format: FormatName = "sdmf"
    permit: Permit = field(default=permit_all, repr=False)
    room: UnpackingBudget = field(factory=UnpackingBudget, repr=False)
    parsed: ParsedDirectories = field(factory=ParsedDirectories, repr=False)
    _open: _OpenFiles = field(factory=_OpenFiles, init=False, repr=False)
    _extents: ExtentReader = field(init=False, repr=False)

    @_extents.default
    def _make_extents(self) -> ExtentReader:
        return ExtentReader(OpenChkFiles(self.grid, self.permit).read)

    @property
    def runtime(self) -> Runtime:
        """The clock, processors and entropy for work on it."""
        return self.grid.runtime

    @property
    def convergence(self) -> bytes | None:
        """The secret that gives equal files equal capabilities; None if they must differ."""
        return self.grid.convergence

    async def put_immutable(
        self,
        source: Source,
        *,
        convergence: bytes | Keep | None = KEEP,
        key: bytes | None = None,
        segment_size: int | None = None,
        keeps: Keeps | None = None,
    ) -> ChkCap | LitCap:
        """Store an immutable file. convergence: None for a random key. key, keeps, errors: as in `immutable.put`.

        segment_size: most bytes of a segment, if not the default.
        """
        grid = self.grid if isinstance(convergence, Keep) else evolve(self.grid, convergence=convergence)
        if segment_size is not None:
            grid = evolve(grid, encoding=evolve(grid.encoding, max_segment_size=segment_size))
        return (await put(source, grid, key=key, keeps=keeps)).cap

    async def put_mutable(
        self, source: Source | Buffer, *, format: FormatName | None = None, key: PrivateKey | None = None
    ) -> WriteCap:
        """Store a new mutable file. key: its private key; None for a new one. Raises the errors of `create_mutable`."""
        return await create_mutable(source, self.grid, format=format or self.mutable_format, key=key)

    def open_mutable(self, cap: KnownCap) -> MutableFile:
        """The mutable file of this cap, or of this directory's cap. The same cap gives the same object.

        What one use remembers makes the next one cheaper. CapError for any other kind of cap.
        """
        body = self._permitted(cap)
        file = self._open.get(body, tuple(self.grid.servers))
        if file is None:
            file = MutableFile(body, self.grid)
            self._open.put(body, file)
        return file

    async def read(self, cap: KnownCap, sink: Sink, offset: int = 0, length: int | None = None) -> int:
        """Write bytes offset .. offset + length of a file to the sink, and return the byte count. length None: to the end.

        AuthorityError with a verify cap; CapError for a directory's cap; also raises the errors of the engine's read.
        """
        if isinstance(cap, DirectoryCap):
            raise CapError("this is the capability of a directory, not of a file")
        return await self.read_bytes(cap, sink, offset, length)

    async def read_bytes(self, cap: KnownCap, sink: Sink, offset: int = 0, length: int | None = None) -> int:
        """Like `read`, but also accepts the file in which a directory is stored."""
        body = self._permitted(cap)
        if body.authority == "verify":
            raise AuthorityError("a verify capability cannot read the file: use its read or write capability")
        if isinstance(body, SliceCap | SequenceCap):
            return await self._extents.read(body, sink, offset, length)
        if not isinstance(body, LitCap | ChkCap):
            return await self.open_mutable(body).read(sink, offset, length)
        return (await ImmutableFile(body, self.grid).read(sink, offset, length)).size

    async def read_around(self, cap: SliceCap) -> tuple[int, bytes | memoryview]:
        """The ciphertext of a slice and of its neighbors; result and errors as in `ExtentReader.read_around`."""
        self._permitted(cap)
        return await self._extents.read_around(cap)

    async def size(self, cap: KnownCap) -> int:
        """Size of a file, or of the file in which a directory is stored. Asks servers only if it is mutable."""
        body = self._permitted(cap)
        if isinstance(body, ImmutableFileCap | ChkVerifyCap):
            return body.size
        return await self.open_mutable(body).size()

    async def check(self, cap: KnownCap, *, verify: bool = False, add_lease: bool = False) -> FileHealth:
        """Check a file or directory with any kind of cap. Raises the errors of the engine's check."""
        body = self._permitted(cap)
        if isinstance(body, SliceCap | SequenceCap):
            return await check_extent(
                body, self._extents, lambda chk: self._check_chk(chk, verify=verify, add_lease=add_lease)
            )
        if not isinstance(body, LitCap | ChkCap | ChkVerifyCap):
            return await self.open_mutable(body).check(verify=verify, add_lease=add_lease)
        return await immutable_check.check(body, self.grid, verify=verify, add_lease=add_lease)

    async def repair(self, cap: KnownCap, *, force: bool = False) -> FileRepair:
        """Verify and repair a file or directory. A mutable one needs its write cap (AuthorityError).

        force: for a mutable file, give up versions that prevent a repair. Raises the errors of the engine's repair.
        """
        body = self._permitted(cap)
        if isinstance(body, SliceCap | SequenceCap):
            return await repair_extent(body, self._extents, self._repair_chk)
        if not isinstance(body, LitCap | ChkCap | ChkVerifyCap):
            return await self.open_mutable(body).repair(force=force)
        return await immutable_repair.repair(body, self.grid)

    def directory(self, cap: DirectoryCap) -> Directory:
        """The directory of this cap; CapError if no file can have the cap's numbers."""
        self.require_directory(cap)
        return Directory(self, cap)

    def require_directory(self, cap: DirectoryCap) -> None:
        """Raise what `directory` would raise."""
        require_usable(cap)
        self._permitted(cap)

    async def create_directory(
        self,
        children: Mapping[str, Child] | None = None,
        *,
        format: FormatName | None = None,
        key: PrivateKey | None = None,
    ) -> DirectoryCap:
        """Store a new mutable directory with these children, whose metadata is stored unchanged.

        key: its private key; None for a new one. CapError for a child that no directory accepts; FormatError; also raises the
        errors of `put_mutable`.
        """
        return DirectoryCap(await self.put_directory(await self.pack_directory(children or {}, format=format, key=key)))

    async def pack_directory(
        self, children: Mapping[str, Child], *, format: FormatName | None = None, key: PrivateKey | None = None
    ) -> NewDirectory:
        """Pack a new mutable directory for put_directory. Raises the errors of `create_directory`."""
        chosen = format or self.mutable_format
        if key is None:
            key = await new_key(self.grid)
        cap = write_cap(key, MDMF_VERSION if chosen == "mdmf" else SDMF_VERSION)
        return NewDirectory(data=await self._packed(children, cap.write_key), format=chosen, key=key)

    async def put_directory(self, new: NewDirectory) -> WriteCap:
        """Store a new mutable directory. Raises the errors of `put_mutable`."""
        return await self.put_mutable(new.data, format=new.format, key=new.key)

    async def create_immutable_directory(self, children: Mapping[str, Child]) -> DirectoryCap:
        """Store a directory that never changes. Equal children give equal caps.

        MustBeDeepImmutableError with the name of a child that is not immutable; nothing is stored then.
        """
        return DirectoryCap(await self.put_immutable(MemorySource(await self._packed(children, None))))

    async def move(
        self, source: Trail, name: str, target: Trail, new_name: str, *, overwrite: Overwrite = True
    ) -> Child | None:
        """Move or rename a link between directories. Result and errors: as in `grid.directory.moving.move`."""
        return await move(self, source, name, target, new_name, overwrite=overwrite)

    def observed_by(self, observer: Observer) -> FileStore:
        """A store on the same grid with another observer, and with open files of its own."""
        return evolve(self, grid=self.grid.observed_by(observer))

    def restricted_by(self, permit: Permit) -> FileStore:
        """A store on the same grid that calls `permit` before it uses a capability, and with open files of its own."""
        return evolve(self, permit=permit)

    async def _packed(self, children: Mapping[str, Child], write_key: bytes | None) -> bytes:
        """The bytes of a new directory. write_key: that of a mutable one."""
        return await run_sized(self.runtime.cpu, len(children), _pack, children, write_key)

    async def _check_chk(self, cap: ChkCap, *, verify: bool, add_lease: bool) -> immutable_check.CheckResult:
        self.permit(cap)
        return await immutable_check.check(cap, self.grid, verify=verify, add_lease=add_lease)

    async def _repair_chk(self, cap: ChkCap) -> immutable_repair.RepairResult:
        self.permit(cap)
        return await immutable_repair.repair(cap, self.grid)

    def _permitted(self, cap: KnownCap) -> KnownCap:
        """The file of the capability, if it may be used."""
        self.permit(cap)
        return cap.body if isinstance(cap, DirectoryCap) else cap


def _pack(children: Mapping[str, Child], write_key: bytes | None) -> bytes:
    """The bytes of a new directory. write_key: that of a mutable one."""
    entries = {}
    for given, child in children.items():
        name = normalize_name(given)
        entries[name] = make_entry(name, child, mutable=write_key is not None, write_key=write_key)
    return pack_directory(entries)
