"""Implements `grid put`: stores one file and optionally links it at a path. [spec cli 2.4]"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click
from attrs import evolve, field

from grid.caps import DirectoryCap, KnownCap
from grid.cli.arguments.aliases import read_aliases
from grid.cli.arguments.remote import RemotePath, parse_remote, require_new_names
from grid.cli.arguments.replacing import ReplacePolicy, Undo, previous_child, time_of
from grid.cli.arguments.sources import FileSource, SpooledFile
from grid.cli.arguments.tree import Tree
from grid.cli.connection import DirectConnection, run_connected
from grid.cli.terminal.failures import tell_warning
from grid.cli.terminal.invocation import prints_json
from grid.directory.edits import SetChild
from grid.directory.names import normalize_name
from grid.directory.pack import Child
from grid.engine.grid import Encoding
from grid.errors import CapError, ChildOfWrongTypeError, FormatError, GridError, NotHappyError
from grid.immutable.put import LIT_SIZE, PutResult
from grid.immutable.put import put as put_file
from grid.plural import counted
from grid.ports import Observer, ignore_events
from grid.values import frozen

if TYPE_CHECKING:
    from grid.cli.connection import Connection, Home
    from grid.cli.terminal.progress import ProgressDisplay
    from grid.crypto.rsa import PrivateKey
    from grid.directory.store import Store
    from grid.mutable.share.geometry import FormatName
    from grid.node.client import Client

MAX_KEY_FILE = 64 * 1024


@frozen(kw_only=True)
class PutOptions:
    """How to store a file. format: `chk`, `sdmf` or `mdmf`. encoding: values that override the configuration.

    is_format_given: by an option rather than by the configuration. force: overwrite a file without a recoverable
    version. undo: collects what is replaced.
    """

    format: str
    is_format_given: bool
    encoding: dict[str, int]
    random_key: bool
    replace: ReplacePolicy
    key_file: str | None
    force: bool = False
    undo: Undo = field(factory=Undo)


@frozen(kw_only=True)
class Stored:
    """What was stored. created: the entry is new. result: of an immutable file. undo: the entry's previous target."""

    cap: str
    size: int
    created: bool
    result: PutResult | None = None
    undo: Undo = field(factory=Undo)

    def to_json(self) -> dict[str, object]:
        """The fields of the JSON line for scripts."""
        line: dict[str, object] = {"cap": self.cap, "size": self.size, "replaced": self.undo.to_json()}
        if self.result is not None:
            line |= {
                "shares_pushed": self.result.pushed,
                "shares_found": self.result.found,
                "happiness": self.result.happiness,
            }
        return line


def usual_format(home: Home) -> str:
    """The default format of mutable files: the configuration's, or what a gateway assumes."""
    settings = getattr(home, "settings", None)
    return "sdmf" if settings is None else str(settings.client.mutable_format).lower()


def store_file(
    home: Home, opened: BinaryIO | SpooledFile, remote: str, options: PutOptions, display: ProgressDisplay
) -> Stored | None:
    """Store the file, at `remote` unless that is empty; None if the existing file must not be replaced.

    Raises the errors of the engines, of the path and of the key file.
    """
    aliases = read_aliases(home)
    target = parse_remote(remote, aliases) if remote.strip(" ") else None
    if target is not None:
        require_new_names(target.names, target.shown)
    _require_fresh(target, options)
    key = None if options.key_file is None else _read_key(options.key_file)

    async def operation(connection: Connection) -> Stored | None:
        source = FileSource(opened, connection.runtime.cpu)
        putting: _Putting
        if isinstance(connection, DirectConnection):
            putting = _DirectPutting(connection, source, options, key, display)
        else:
            putting = _Putting(connection, source, options, key, display)
        if target is not None:
            return await putting.put_at(target)
        return await (putting.put_immutable() if options.format == "chk" else putting.put_mutable())

    return run_connected(home, operation)


class _Putting:
    """One file being stored. Subclasses decide how it is encoded."""

    def __init__(
        self,
        connection: Connection,
        source: FileSource,
        options: PutOptions,
        key: PrivateKey | None,
        display: ProgressDisplay,
    ) -> None:
        self._connection = connection
        self._source = source
        self._options = options
        self._key = key
        self._display = display
        self._require_options()

    def _require_options(self) -> None:
        if self._options.encoding or self._options.random_key:
            raise click.UsageError(
                "--needed, --happy, --total and --unique work only without --gateway: a gateway has its own encoding"
            )
        if self._options.force:
            raise click.UsageError("--force works only without --gateway")

    async def _open_store(self, observer: Observer) -> Store:
        return await self._connection.open_store(observer)

    async def put_immutable(self) -> Stored:
        """Store a new immutable file without linking it."""
        cap = await (await self._open_store(self._display)).put_immutable(self._source)
        return Stored(cap=cap.to_string(), size=self._source.size, created=True)

    async def put_mutable(self) -> Stored:
        """Store a new mutable file without linking it."""
        store = await self._open_store(self._display)
        chosen: FormatName = "mdmf" if self._options.format == "mdmf" else "sdmf"
        cap = await store.put_mutable(self._source, format=chosen, key=self._key)
        return Stored(cap=cap.to_string(), size=self._source.size, created=True)

    async def put_at(self, target: RemotePath) -> Stored | None:
        """Store the file at a path or into an existing mutable file; None if the existing file must not be replaced."""
        if not target.names:
            return await self._overwrite(_writable_file(target.root))
        if target.inside:
            raise ChildOfWrongTypeError(
                f"{target.shown} is a directory: give the file a name after the slash", name=target.shown
            )
        # Reading and changing directories does not count as progress.
        store = await self._open_store(ignore_events)
        parent, name = await Tree(store=store, survey=self._connection.survey(store)).parent(target, make=True)
        before = await parent.list()
        there = before.get(normalize_name(name))
        if there is not None and isinstance(there.target, DirectoryCap):
            raise ChildOfWrongTypeError(f"{target.shown} is a directory: give the file a name in it", name=target.shown)
        if there is not None and not await self._may_replace(target, there):
            return None
        if there is not None and isinstance(there.target, KnownCap) and there.target.is_mutable:
            return await self._overwrite(_writable_file(there.target))
        stored = await (self.put_immutable() if self._options.format == "chk" else self.put_mutable())
        cap = parse_remote(stored.cap, {}).root
        with self._options.undo.in_doubt(parent.cap, before, [(target, cap)]):
            replaced = previous_child(name, before, await parent.edit([SetChild(name, cap)]))
        self._options.undo.note(parent.cap, target, replaced, cap)
        return evolve(stored, created=there is None, undo=self._options.undo)

    async def _may_replace(self, target: RemotePath, there: Child) -> bool:
        policy = self._options.replace
        return await policy.permits(target.shown, new_time=self._source.changed_at, old_time=time_of(there.metadata))

    async def _overwrite(self, cap: KnownCap) -> Stored:
        store = await self._open_store(self._display)
        await store.open_mutable(cap).overwrite(self._source)
        return Stored(cap=cap.to_string(), size=self._source.size, created=False)


class _DirectPutting(_Putting):
    """Storing through our own client, which chooses the encoding and reports the shares."""

    def __init__(
        self,
        connection: DirectConnection,
        source: FileSource,
        options: PutOptions,
        key: PrivateKey | None,
        display: ProgressDisplay,
    ) -> None:
        self._client: Client = connection.client
        super().__init__(connection, source, options, key, display)

    def _require_options(self) -> None:
        usual, given = self._client.encoding, self._options.encoding
        _require_encoding({"k": usual.k, "happy": usual.happy, "n": usual.n} | given, given)
        self._encoding: Encoding = evolve(usual, **given)

    async def _open_store(self, observer: Observer) -> Store:
        store = await DirectConnection(self._client).open_store(observer)
        return evolve(store, grid=evolve(store.grid, encoding=self._encoding))

    async def put_mutable(self) -> Stored:
        """Store a new mutable file without linking it, and warn of encodings that endanger it."""
        from grid.mutable.write.staging import encoding_notice

        notice = encoding_notice(self._encoding.k, self._encoding.n)
        if notice is not None:
            with self._display.paused():
                if prints_json():
                    tell_warning(notice, as_json=True)
                else:
                    click.echo(f"Note: {notice}.", err=True)
        return await super().put_mutable()

    async def _overwrite(self, cap: KnownCap) -> Stored:
        if not self._options.force:
            return await super()._overwrite(cap)
        from grid.mutable.node import MutableFile

        file = (await self._open_store(self._display)).open_mutable(cap)
        assert isinstance(file, MutableFile)
        await file.overwrite(self._source, force=True)
        return Stored(cap=cap.to_string(), size=self._source.size, created=False)

    async def put_immutable(self) -> Stored:
        """Store a new immutable file; NotHappyError."""
        servers = [] if self._source.size <= LIT_SIZE else await self._client.servers()
        try:
            grid = evolve(self._client.grid(servers, self._display), encoding=self._encoding)
            if self._options.random_key:
                grid = evolve(grid, convergence=None)
            result = await put_file(self._source, grid)
        except NotHappyError as problem:
            if len(servers) >= self._encoding.happy:
                raise
            known = counted(len(servers), "server is", "servers are")
            text = f"only {known} known, and {self._encoding.happy} are needed"
            from grid.cli.arguments.share_counts import how_to_ask_for_fewer

            fewer = how_to_ask_for_fewer(self._client.directory.path, len(servers))
            raise NotHappyError(text, causes=problem.causes, full=problem.full, fewer=fewer) from None
        return Stored(cap=result.cap.to_string(), size=self._source.size, created=True, result=result)


def _require_encoding(encoding: Mapping[str, int], given: Collection[str]) -> None:
    """Raise UsageError that names the two conflicting numbers.

    given: those from options rather than the configuration.
    """
    words = {"k": "needed", "happy": "happy", "n": "total"}
    named = {
        key: f"{f'--{word}' if key in given else f'shares.{word}'} ({encoding[key]})" for key, word in words.items()
    }
    for key in ("k", "happy"):
        if encoding[key] > encoding["n"]:
            raise click.UsageError(f"{named[key]} must not be larger than {named['n']}")


def _require_fresh(target: RemotePath | None, options: PutOptions) -> None:
    """Raise UsageError if options for a new file are combined with the capability of an existing one."""
    if target is None or target.names or isinstance(target.root, DirectoryCap):
        return
    if options.replace.is_given:
        raise click.UsageError("-n, -i and -u need a path for the file, not a capability")
    is_mdmf = target.root.to_string().startswith("URI:MDMF")
    if options.is_format_given and options.format != ("mdmf" if is_mdmf else "sdmf"):
        raise click.UsageError(
            f"--format {options.format.upper()} is for a new file: the file of this capability keeps its format"
        )
    if options.encoding or options.random_key or options.key_file is not None:
        raise click.UsageError(
            "--needed, --happy, --total, --unique and --private-key-path are for a new file:"
            " the file of this capability keeps its shares and its key"
        )


def _writable_file(cap: KnownCap) -> KnownCap:
    if isinstance(cap, DirectoryCap):
        raise GridError("this is a directory: give the file a name in it")
    if not cap.is_mutable:
        raise CapError("this is the capability of an immutable file, whose contents never change")
    return cap


def _read_key(path: str) -> PrivateKey:
    """Read an RSA key from a PEM file; FormatError, OSError."""
    from grid.crypto.rsa import import_private_key

    with Path(path).open("rb") as file:
        data = file.read(MAX_KEY_FILE)
    try:
        return import_private_key(data)
    except FormatError as error:
        raise GridError(f"{path}: {error}") from None
