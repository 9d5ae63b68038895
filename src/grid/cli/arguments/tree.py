"""Common parts of commands on trees: the client directory, its aliases, and the objects that arguments name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import click

from grid.caps import DirectoryCap, KnownCap, UnknownChild
from grid.cli.arguments.aliases import read_aliases
from grid.cli.arguments.remote import RemotePath, parse_remote
from grid.cli.connection import open_home, run_connected
from grid.directory.moving import follow_trail
from grid.directory.pack import Child
from grid.directory.store import Trail
from grid.errors import ChildOfWrongTypeError, GridError, NoSuchChildError
from grid.ports import ignore_events
from grid.values import frozen

if TYPE_CHECKING:
    from grid.cli.connection import Connection, Home
    from grid.cli.surveys import Survey
    from grid.directory.edits import Overwrite
    from grid.directory.store import OpenDirectory, Store
    from grid.ports import Observer

T = TypeVar("T")


@frozen(kw_only=True)
class Tree:
    """A connected store, with access to surveys of whole trees."""

    store: Store
    survey: Survey

    async def find(self, path: RemotePath) -> Child:
        """Return the object at the path; a root has no metadata. NoSuchChildError; the errors of a read."""
        if not path.names:
            return Child(target=path.root)
        try:
            return await self.store.directory(path.directory).get(path.names)
        except NoSuchChildError:
            raise nothing_at(path) from None

    async def find_directory(self, path: RemotePath) -> OpenDirectory:
        """Open the directory at the path; ChildOfWrongTypeError if it is something else."""
        target = (await self.find(path)).target
        if not isinstance(target, DirectoryCap):
            raise ChildOfWrongTypeError(f"{path.shown} is not a directory", name=path.shown)
        return self.store.directory(target)

    async def parent(self, path: RemotePath, *, make: bool = False) -> tuple[OpenDirectory, str]:
        """The directory that contains the path's last name, and that name. make: create missing directories."""
        if not path.names:
            raise GridError(f"{path.shown} is a root, not an entry of a directory")
        await self.require_meant(path)
        root = self.store.directory(path.directory)
        if make:
            return await root.make_directories(path.names[:-1]), path.names[-1]
        return await self.find_directory(path.parent), path.names[-1]

    async def require_meant(self, path: RemotePath) -> None:
        """Raise NoSuchChildError for a missing path that begins with the name of another alias without its colon."""
        if path.suggestion:
            try:
                await self.store.directory(path.directory).get(path.names[:1])
            except NoSuchChildError:
                raise nothing_at(path) from None

    async def move(self, old: RemotePath, new: RemotePath, *, overwrite: Overwrite) -> DirectoryCap:
        """Move an entry, and return the directory it was in. Raises the errors of `grid.directory.moving.move`."""
        source, target = await self._trail(old), await self._trail(new)
        await self.store.move(source, old.names[-1], target, new.names[-1], overwrite=overwrite)
        return source.end

    async def _trail(self, path: RemotePath) -> Trail:
        """The trail to the directory that contains the path's last name."""
        if not path.names:
            raise GridError(f"{path.shown} is a root, not an entry of a directory")
        return await follow_trail(self.store, path.directory, path.names[:-1])


def nothing_at(path: RemotePath) -> NoSuchChildError:
    """The error for a path that does not exist."""
    if path.suggestion:
        return NoSuchChildError(f"There is no path '{path.shown}'. Did you mean '{path.suggestion}'?", name=path.shown)
    return NoSuchChildError(f"{path.shown}: No such file or directory", name=path.shown)


def known(child: Child, shown: str) -> KnownCap:
    """The capability of a child; GridError if its kind is unknown."""
    if isinstance(child.target, UnknownChild):
        raise GridError(f"{shown} is of an unknown kind; a newer version of Grid may support it")
    return child.target


def open_tree_directory(context: click.Context) -> tuple[Home, dict[str, str]]:
    """The client directory or gateway of the command line, and its aliases; ConfigError."""
    home = open_home(context)
    return home, read_aliases(home)


def parse_paths(arguments: tuple[str, ...], aliases: Mapping[str, str]) -> list[RemotePath]:
    """Parse the arguments as paths; without any, the default root."""
    return [parse_remote(argument, aliases) for argument in arguments or ("",)]


def run_in_tree(home: Home, operation: Callable[[Tree], Awaitable[T]]) -> T:
    """Connect, run the operation and return its result."""

    async def task(connection: Connection) -> T:
        return await operation(await open_tree(connection))

    return run_connected(home, task)


async def open_tree(connection: Connection, observer: Observer = ignore_events) -> Tree:
    """The tree of a connection, once servers are known; NoServersError."""
    store = await connection.open_store(observer)
    return Tree(store=store, survey=connection.survey(store))
