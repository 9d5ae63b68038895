"""Common parts of cp, backup and restore: the client directory, its aliases, its database, and the store."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import click
from attrs import evolve

from grid.caps import has_cap_prefix
from grid.cli.arguments.aliases import read_aliases
from grid.cli.arguments.remote import parse_remote, require_local_source, require_local_target, require_new_names
from grid.cli.connection import Connection, Warnings, open_home, run_connected
from grid.cli.transfer.backup_lock import LOCKS, RECORDS
from grid.cli.transfer.database import LocalDatabase
from grid.cli.transfer.endpoints import Endpoint, LocalEndpoint, RemoteEndpoint
from grid.values import frozen

if TYPE_CHECKING:
    from grid.cli.connection import Connection, Home
    from grid.directory.store import Store

T = TypeVar("T")

DATABASE = "backupdb.sqlite"
"""Its name in private/ of the client directory. [spec cli 3.4]"""


@frozen
class TransferSession:
    """An open client directory with its database."""

    directory: Home
    database: LocalDatabase
    aliases: Mapping[str, str]

    def run(self, operation: Callable[[Connection], Awaitable[T]]) -> T:
        """Connect, run the operation and return its result."""
        return run_connected(self.directory, operation)


@contextmanager
def transfer_session(context: click.Context) -> Iterator[TransferSession]:
    """Open the client directory of the command line and its database; ConfigError."""
    directory = open_home(context)
    database = LocalDatabase(directory.private / DATABASE, Warnings().tell)
    try:
        yield TransferSession(directory, database, read_aliases(directory))
    finally:
        database.close()


def open_endpoints(session: TransferSession, arguments: Sequence[str]) -> list[Endpoint]:
    """Parse the arguments of a copy; one without a colon is local. [spec cli 1.5]

    The last one is the target. A local name that does not exist but equals an alias is refused.
    """
    endpoints: list[Endpoint] = []
    for index, text in enumerate(arguments):
        text = text.strip(" ")
        before, colon, _ = text.partition(":")
        if not has_cap_prefix(text) and (not colon or "/" in before):
            require = require_local_target if index == len(arguments) - 1 else require_local_source
            require(text, session.aliases)
            endpoints.append(LocalEndpoint(os.path.expanduser(text), text))
        else:
            endpoint = open_remote_endpoint(session, text)
            if index == len(arguments) - 1:
                require_new_names(endpoint.path, endpoint.shown)
            endpoints.append(endpoint)
    return endpoints


def open_remote_endpoint(session: TransferSession, text: str) -> RemoteEndpoint:
    """Parse an endpoint on the grid: a capability or ALIAS:, and a path below it. [spec cli 1.5]"""
    path = parse_remote(text, session.aliases)
    return RemoteEndpoint(
        path.root, path.names, path.shown, path.inside and bool(path.names), path.argument, path.suggestion
    )


def own_files(session: TransferSession) -> dict[str, str]:
    """What a backup writes into the client directory while it runs: names, each with its directory without links."""
    names = [*(f"{DATABASE}{suffix}" for suffix in ("", "-journal", "-wal", "-shm")), LOCKS, RECORDS]
    names += [path.name for path in session.directory.private.glob("introducer_*_cache.yaml")]
    return dict.fromkeys(names, os.path.realpath(session.directory.private))


def wants_packs(session: TransferSession, given: bool | None) -> bool:
    """Whether small files go into packs: as the command line says, else `[client] pack` of the client directory."""
    if given is not None:
        return given
    settings = getattr(session.directory, "settings", None)
    return settings is not None and bool(settings.client.pack)


def with_random_keys(store: Store) -> Store:
    """The same store, but with random keys for new immutable files; a gateway chooses its own keys."""
    from grid.directory.file_store import FileStore

    return evolve(store, grid=evolve(store.grid, convergence=None)) if isinstance(store, FileStore) else store
