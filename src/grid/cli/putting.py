"""What `grid put` does once it runs: store the octets, and link them where they are to be. [spec cli 2.4]"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click
from attrs import evolve, frozen

from grid.caps import DirectoryCap, KnownCap
from grid.cli.aliases import read_aliases
from grid.cli.client_command import run_with_client
from grid.cli.remote import RemotePath, parse_remote
from grid.cli.sources import FileSource
from grid.cli.tree import Tree, open_tree
from grid.crypto.rsa import PrivateKey, import_private_key
from grid.directory.edits import SetChild
from grid.errors import CapError, FormatError, GridError, NoServersError, NoSpaceError, NotHappyError
from grid.immutable.put import LIT_SIZE, Encoding, PutResult
from grid.immutable.put import put as put_file
from grid.mutable.keys import WriteCap

if TYPE_CHECKING:
    from grid.cli.progress import ProgressDisplay
    from grid.node.client import Client
    from grid.node.directory import NodeDirectory

MAX_KEY_FILE = 64 * 1024


@frozen(kw_only=True)
class PutOptions:
    """How a file is to be stored. format: `chk`, `sdmf` or `mdmf`; encoding: what differs from the configuration."""

    format: str
    encoding: dict[str, int]
    random_key: bool
    key_file: str | None


@frozen(kw_only=True)
class Stored:
    """What was stored. created: the entry is new; result: of an immutable file."""

    cap: str
    size: int
    created: bool
    result: PutResult | None = None

    def to_json(self) -> dict[str, object]:
        """The fields of the line that scripts read."""
        line: dict[str, object] = {"cap": self.cap, "size": self.size}
        if self.result is not None:
            line |= {
                "shares_pushed": self.result.pushed,
                "shares_found": self.result.found,
                "happiness": self.result.happiness,
            }
        return line


def store_file(
    directory: NodeDirectory, opened: BinaryIO, remote: str, options: PutOptions, display: ProgressDisplay
) -> Stored:
    """Store the file, at `remote` if that is not empty; the errors of the engines, of the path and of the key file."""
    aliases = read_aliases(directory)
    target = parse_remote(remote, aliases) if remote.strip(" ") else None
    key = None if options.key_file is None else _read_key(options.key_file)

    async def operation(client: Client) -> Stored:
        putting = _Putting(client, FileSource(opened, client.runtime.cpu), options, key, display)
        if target is None and options.format == "chk":
            return await putting.put_immutable()
        tree = await open_tree(client, aliases, display)
        putting.tree = evolve(tree, store=evolve(tree.store, encoding=putting.encoding))
        return await (putting.put_unlinked() if target is None else putting.put_at(target))

    return run_with_client(directory, operation)


class _Putting:
    """One file on its way."""

    tree: Tree

    def __init__(
        self,
        client: Client,
        source: FileSource,
        options: PutOptions,
        key: PrivateKey | None,
        display: ProgressDisplay,
    ) -> None:
        self._client = client
        self._source = source
        self._options = options
        self._key = key
        self._display = display
        try:
            self.encoding: Encoding = evolve(client.encoding, **options.encoding)
        except FormatError as problem:
            raise click.UsageError(str(problem)) from None

    async def put_immutable(self) -> Stored:
        servers = [] if self._source.size <= LIT_SIZE else await self._client.servers()
        try:
            result = await put_file(
                self._source,
                encoding=self.encoding,
                convergence=None if self._options.random_key else self._client.directory.convergence_secret(),
                servers=servers,
                leases=self._client.leases,
                runtime=self._client.runtime,
                observer=self._display,
                preferred=self._client.preferred,
            )
        except NotHappyError as problem:
            if problem.causes:
                raise
            if len(servers) < self.encoding.happy:
                raise NoServersError(f"{problem} Only {len(servers)} servers are known.") from None
            # All of them answered, and too few would take a share: they have no room, or are read-only.
            raise NoSpaceError(str(problem)) from None
        return Stored(cap=result.cap.to_string(), size=self._source.size, created=True, result=result)

    async def put_unlinked(self) -> Stored:
        cap = await self._put_mutable()
        return Stored(cap=cap.to_string(), size=self._source.size, created=True)

    async def put_at(self, target: RemotePath) -> Stored:
        """At a path, or in the mutable file of a capability."""
        if not target.names:
            return await self._overwrite(_writable_file(target.root))
        if target.inside:
            raise GridError(f"{target.shown} is a directory: give the file a name behind the slash")
        parent, name = await self.tree.parent(target, make=True)
        there = (await parent.list()).get(name)
        if there is not None and isinstance(there.target, DirectoryCap):
            raise GridError(f"{target.shown} is a directory: give the file a name in it")
        if there is not None and isinstance(there.target, KnownCap) and there.target.is_mutable:
            return await self._overwrite(_writable_file(there.target))
        stored = await (self.put_immutable() if self._options.format == "chk" else self.put_unlinked())
        await parent.edit([SetChild(name, parse_remote(stored.cap, {}).root)])
        return evolve(stored, created=there is None)

    async def _put_mutable(self) -> WriteCap:
        return await self.tree.store.put_mutable(
            self._source, format="mdmf" if self._options.format == "mdmf" else "sdmf", key=self._key
        )

    async def _overwrite(self, cap: KnownCap) -> Stored:
        await self.tree.store.open_mutable(cap).overwrite(self._source)
        return Stored(cap=cap.to_string(), size=self._source.size, created=False)


def _writable_file(cap: KnownCap) -> KnownCap:
    if isinstance(cap, DirectoryCap):
        raise GridError("this is a directory: give the file a name in it")
    if not cap.is_mutable:
        raise CapError("this is the capability of an immutable file, whose contents never change")
    return cap


def _read_key(path: str) -> PrivateKey:
    """The RSA key in a file in PEM; FormatError, OSError."""
    with Path(path).open("rb") as file:
        data = file.read(MAX_KEY_FILE)
    try:
        return import_private_key(data)
    except FormatError as error:
        raise GridError(f"{path}: {error}") from None
