"""What one command changes, noted in the journal as it happens."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click
from attrs import evolve

from grid.cli.terminal.invocation import invocation
from grid.cli.undo.changes import Change, ChangedLink
from grid.cli.undo.journal import Journal, journal_path
from grid.errors import ConfigError
from grid.node.files import expand_home

MAX_LINKS = 10_000
"""Links of one change that are kept."""


class Recorder:
    """Notes what one command changes, up to MAX_LINKS links."""

    def __init__(self, journal: Journal, change: Change) -> None:
        """change: without links."""
        self._journal = journal
        self._change = change
        self._room = MAX_LINKS

    def record(self, links: Sequence[ChangedLink]) -> None:
        """Note links that have just been changed; ConfigError, also if they are more than are kept."""
        kept = links[: self._room]
        if kept:
            change = evolve(self._change, links=kept)
            if change.number:
                self._journal.add(change)
            else:
                self._change = evolve(change, links=(), number=self._journal.begin(change))
        self._room -= len(kept)
        if len(kept) < len(links):
            raise ConfigError(f"a change of more than {MAX_LINKS} links is kept in part")


def open_recorder(context: click.Context) -> Recorder:
    """A recorder for the command of this context."""
    command = context.info_name or ""
    change = Change(number=0, time=time.time(), command=command, client=client_of(context), links=())
    return Recorder(Journal(journal_path()), change)


def client_of(context: click.Context) -> str:
    """The client directory that the command line names, there or not: capabilities are those of its grid."""
    return str(expand_home(invocation(context).node_directory).resolve())
