"""What the commands on a tree share: the client directory, its aliases, and the objects that arguments name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import click
from attrs import frozen

from grid.caps import DirectoryCap, KnownCap, UnknownChild
from grid.cli.aliases import read_aliases
from grid.cli.client_command import open_client_directory, run_with_client
from grid.cli.remote import RemotePath, parse_remote
from grid.directory.filestore import FileStore
from grid.directory.node import Directory
from grid.directory.pack import Child
from grid.errors import ChildOfWrongTypeError, GridError

if TYPE_CHECKING:
    from grid.node.client import Client
    from grid.node.directory import NodeDirectory
    from grid.ports import Observer, StorageServer

T = TypeVar("T")


@frozen(kw_only=True)
class Tree:
    """An open client with its file store and aliases."""

    store: FileStore
    client: Client
    directory: NodeDirectory
    aliases: Mapping[str, str]

    async def find(self, path: RemotePath) -> Child:
        """What is at the path; of a root, itself without metadata. NoSuchChildError; the errors of a read."""
        if not path.names:
            return Child(target=path.root)
        return await self.store.directory(path.directory).get(path.names)

    async def find_directory(self, path: RemotePath) -> Directory:
        """The directory at the path; ChildOfWrongTypeError if that is something else."""
        target = (await self.find(path)).target
        if not isinstance(target, DirectoryCap):
            raise ChildOfWrongTypeError(f"{path.shown} is not a directory", name=path.shown)
        return self.store.directory(target)

    async def parent(self, path: RemotePath, *, make: bool = False) -> tuple[Directory, str]:
        """The directory that the last name of a path is in, and the name. make: directories that are missing."""
        if not path.names:
            raise GridError(f"{path.shown} is a root, and no entry of a directory")
        root = self.store.directory(path.directory)
        if make:
            return await root.make_directories(path.names[:-1]), path.names[-1]
        above = RemotePath(root=path.root, names=path.names[:-1], shown=path.shown)
        return await self.find_directory(above), path.names[-1]


def known(child: Child, shown: str) -> KnownCap:
    """The capability of a child; GridError if it is of an unknown kind."""
    if isinstance(child.target, UnknownChild):
        raise GridError(f"{shown} is of a kind that is not known here; a newer version may know it")
    return child.target


def open_tree_directory(context: click.Context) -> tuple[NodeDirectory, dict[str, str]]:
    """The client directory that the command line names, and its aliases; ConfigError."""
    directory = open_client_directory(context)
    return directory, read_aliases(directory)


def parse_paths(arguments: tuple[str, ...], aliases: Mapping[str, str]) -> list[RemotePath]:
    """The paths that the arguments name; the default root if there are none."""
    return [parse_remote(argument, aliases) for argument in arguments or ("",)]


def run_in_tree(
    directory: NodeDirectory,
    aliases: Mapping[str, str],
    operation: Callable[[Tree], Awaitable[T]],
    observer: Observer | None = None,
) -> T:
    """The operation's result."""

    async def task(client: Client) -> T:
        return await operation(await open_tree(client, aliases, observer))

    return run_with_client(directory, task)


async def open_tree(client: Client, aliases: Mapping[str, str], observer: Observer | None = None) -> Tree:
    """The tree of a client, once servers are known; NoServersError."""
    store = _make_store(client, await client.servers())
    if observer is not None:
        store = store.observed_by(observer)
    return Tree(store=store, client=client, directory=client.directory, aliases=aliases)


def store_without_servers(client: Client) -> FileStore:
    """For what is in its capability."""
    return _make_store(client, ())


def _make_store(client: Client, servers: Sequence[StorageServer]) -> FileStore:
    return FileStore(
        servers=servers,
        runtime=client.runtime,
        leases=client.leases,
        encoding=client.encoding,
        convergence=client.directory.convergence_secret(),
        mutable_format="mdmf" if client.directory.settings.client.mutable_format == "MDMF" else "sdmf",
        preferred=client.preferred,
    )
