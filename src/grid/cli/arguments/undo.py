"""What a command took out of a directory of the grid, and the command that links it again.

The way back is a capability. It is printed only to a terminal, or where JSON was asked for, and never reaches a log.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping

import click
from attrs import define, field, frozen

from grid.caps import KnownCap, UnknownChild
from grid.cli.arguments.remote import RemotePath
from grid.directory.edits import Edit
from grid.directory.names import normalize_name
from grid.directory.pack import Child, Target
from grid.directory.store import OpenDirectory


@frozen
class Taken:
    """One link that is gone. target: what it led to."""

    path: RemotePath
    target: Target = field(repr=False)

    @property
    def cap(self) -> str:
        """The capability with the most authority."""
        if isinstance(self.target, UnknownChild):
            return (self.target.write or self.target.read or b"").decode("utf-8", "replace")
        return self.target.to_string()


@define
class Undo:
    """Collects what a command takes away. word: `removed` or `replaced`."""

    word: str = "replaced"
    taken: list[Taken] = field(factory=list)

    def note(self, path: RemotePath, old: Child | None, new: Target | None = None) -> None:
        """Remember what was at the path, if anything was, and if it is not the same as what is there now."""
        if old is not None and old.target != new:
            self.taken.append(Taken(path, old.target))

    def to_json(self) -> list[dict[str, str]]:
        """For scripts: the path and the capability of each."""
        return [{"path": each.path.shown, "cap": each.cap} for each in self.taken]

    def tell(self) -> None:
        """Print the way back to the terminal; where stderr is none, nothing."""
        if not self.taken or not sys.stderr.isatty():
            return
        if len(self.taken) == 1:
            click.echo(f"{self.word.capitalize()} {self.taken[0].path.shown}. To link it again:", err=True)
        else:
            click.echo(f"{len(self.taken)} links were {self.word}. To link them again:", err=True)
        for each in self.taken:
            if isinstance(each.target, KnownCap):
                click.echo(f"  grid ln {each.cap} {shell_word(each.path.argument)}", err=True)
            else:
                click.echo(f"  (of a kind that is not known here) {shell_word(each.cap)}", err=True)


async def edit_entry(directory: OpenDirectory, edit: Edit) -> Child | None:
    """Make one edit; the child that had the name before.

    A gateway does not say what it replaced: there it is the child that was listed just before.
    """
    before = await directory.list()
    return previous_child(edit.name, before, await directory.edit([edit]))


def previous_child(name: str, before: Mapping[str, Child], replaced: object) -> Child | None:
    """What had the name before an edit. before: as listed earlier. replaced: what the edit gave back, if it says."""
    name = normalize_name(name)
    return replaced.get(name) if isinstance(replaced, Mapping) else before.get(name)


def shell_word(text: str) -> str:
    """The text as one word of a shell's command line, without anything that moves a terminal's cursor."""
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(_escape(character) for character in text) + "'"


def _escape(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable() and not 0xD800 <= ord(character) <= 0xDFFF:
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
