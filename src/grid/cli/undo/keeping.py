"""Keeps what a command that changes many entries replaces or removes, for `grid undo`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from grid.caps import DirectoryCap
from grid.cli.terminal.failures import tell_warning
from grid.cli.terminal.invocation import invocation
from grid.directory.edits import OnReplaced, Replaced
from grid.directory.names import normalize_name
from grid.directory.pack import Child
from grid.errors import ConfigError
from grid.values import define, field

if TYPE_CHECKING:
    from grid.cli.undo.changes import ChangedLink
    from grid.cli.undo.journal import Recorder


@define
class Keeper:
    """Writes links to the journal as one change. If that fails, it warns once, and the command goes on."""

    _context: click.Context
    _recorder: Recorder | None = field(default=None, repr=False)
    _has_warned: bool = False

    def keep(self, links: Sequence[ChangedLink]) -> bool:
        """Write links, and return whether all of them were written."""
        if not links:
            return True
        try:
            if self._recorder is None:
                from grid.cli.undo.journal import open_recorder

                self._recorder = open_recorder(self._context)
            self._recorder.record(links)
        except ConfigError as error:
            if not self._has_warned:
                self._has_warned = True
                tell_warning(f"not kept for `grid undo`: {error}", as_json=invocation(self._context).as_json)
            return False
        return True

    def end_change(self) -> None:
        """End the change: what follows is undone separately."""
        self._recorder = None

    def below(self, shown: str, name: str = "") -> OnReplaced:
        """A function that keeps entries below a path, and the path itself as no names. shown: the path in messages.

        name: its last name.
        """

        def keep(directory: DirectoryCap, entries: Sequence[Replaced]) -> None:
            from grid.cli.undo.changes import ChangedLink

            self.keep(
                [
                    ChangedLink(
                        directory=directory,
                        name=normalize_name(names[-1] if names else name),
                        shown=_joined(shown, names),
                        old=old,
                        new=None if new is None else Child(target=new),
                    )
                    for names, old, new in entries
                    if old.target != new
                ]
            )

        return keep


def _joined(shown: str, names: Sequence[str]) -> str:
    for name in names:
        shown = f"{shown}{name}" if shown.endswith((":", "/")) else f"{shown}/{name}"
    return shown
