"""Decides whether existing files may be replaced, and keeps what was replaced for `grid undo`.

Getting a file back takes its capability, which is printed only to a terminal or as requested JSON, and is never logged.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, TypeVar, cast

import click

from grid.directory.metadata import seconds_in
from grid.errors import MayHoldError
from grid.values import define, field, frozen

if TYPE_CHECKING:
    from grid.caps import DirectoryCap
    from grid.cli.arguments.remote import RemotePath
    from grid.cli.terminal.confirmation import Confirmation
    from grid.cli.undo.changes import ChangedLink
    from grid.cli.undo.keeping import Keeper
    from grid.directory.edits import RemoveChild, SetChild
    from grid.directory.pack import Child, Target
    from grid.directory.store import OpenDirectory

F = TypeVar("F", bound=Callable[..., object])

_OPTIONS = {
    "n": (("-n", "--no-clobber"), "no_clobber", "Never replace an existing file."),
    "i": (("-i", "--interactive"), "interactive", "Ask before replacing a file; needs a terminal."),
    "u": (("-u", "--update"), "update", "Replace a file only if it is older than the one that would replace it."),
}


def replace_options(letters: str = "niu") -> Callable[[F], F]:
    """Add the options of these letters; the command gets them as `policy`. UsageError if they contradict each other."""

    def add(command: F) -> F:
        @wraps(command)
        def run(*arguments: object, **options: object) -> object:
            flags = {name: bool(options.pop(name, False)) for _, name, _ in _OPTIONS.values()}
            if flags["update"]:
                _refuse_urls(options.values())
            return command(*arguments, policy=make_policy(**flags), **options)

        for letter in reversed(letters):
            names, parameter, text = _OPTIONS[letter]
            run = click.option(*names, parameter, is_flag=True, help=text)(run)
        return cast(F, run)

    return add


def _refuse_urls(values: Iterable[object]) -> None:
    """Raise UsageError if a value is a URL, as for `tahoe -u`."""
    for value in values:
        texts = value if isinstance(value, tuple) else (value,)
        if any(isinstance(text, str) and text.startswith(("http://", "https://")) for text in texts):
            raise click.UsageError(
                "-u replaces only older files; for a gateway's URL, it goes before the command: grid --gateway URL COMMAND"
            )


@define
class ReplacePolicy:
    """When existing files may be replaced; by default, always. quiet: a context entered while a question is open."""

    never: bool = False
    ask: bool = False
    newer: bool = False
    quiet: Callable[[], AbstractContextManager[object]] = nullcontext
    _confirmation: Confirmation | None = field(default=None, repr=False)

    @property
    def is_given(self) -> bool:
        """Whether any option restricts replacing."""
        return self.never or self.ask or self.newer

    async def permits(self, shown: str, *, new_time: float | None, old_time: float | None) -> bool:
        """Whether the file at `shown` may be replaced.

        Times are Unix times; a file without one never counts as newer.
        """
        if self.never:
            return False
        if self.newer and (new_time is None or old_time is None or new_time <= old_time):
            return False
        if not self.ask:
            return True
        if self._confirmation is None:
            from grid.cli.terminal.confirmation import Confirmation

            self._confirmation = Confirmation(self.quiet)
        return await self._confirmation.confirm(f"replace {shown}?")


def make_policy(*, no_clobber: bool = False, interactive: bool = False, update: bool = False) -> ReplacePolicy:
    """The policy of the options; UsageError if they contradict each other, or if there is no terminal to ask on."""
    if no_clobber and (interactive or update):
        other = "-i" if interactive else "-u"
        raise click.UsageError(f"-n and {other} contradict each other: -n never replaces anything")
    if interactive and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("-i needs a terminal: use -n or -u instead")
    return ReplacePolicy(never=no_clobber, ask=interactive, newer=update)


def time_of(metadata: Mapping[str, object]) -> float | None:
    """The Unix time of a link: the file's own if a backup recorded it, else when the link was made or changed.

    Changing a mutable file's contents does not change its link.
    """
    tahoe = metadata.get("tahoe")
    times = tahoe if isinstance(tahoe, Mapping) else {}
    for value in (metadata.get("mtime"), times.get("linkmotime"), times.get("linkcrtime"), metadata.get("ctime")):
        seconds = seconds_in(value)
        if seconds is not None:
            return seconds
    return None


@frozen
class Taken:
    """A link that was removed or replaced. target: what it led to."""

    path: RemotePath
    target: Target = field(repr=False)

    @property
    def cap(self) -> str:
        """The strongest capability of the target."""
        from grid.caps import UnknownChild

        if isinstance(self.target, UnknownChild):
            return (self.target.write or self.target.read or b"").decode("utf-8", "replace")
        return self.target.to_string()


@define
class Undo:
    """Collects what a command removes or replaces, and records it for `grid undo`. word: `removed` or `replaced`.

    journal: where to record it, or None.
    """

    word: str = "replaced"
    journal: Callable[[Sequence[ChangedLink]], bool] | None = field(default=None, repr=False)
    taken: list[Taken] = field(factory=list)
    _is_kept: bool = False

    def note(self, directory: DirectoryCap, path: RemotePath, old: Child | None, new: Target | None = None) -> None:
        """Record the old entry of the path, unless there was none or it is unchanged.

        directory: the one that holds the entry.
        """
        self.note_all(directory, [(path, old, new)])

    def note_all(
        self, directory: DirectoryCap, entries: Iterable[tuple[RemotePath, Child | None, Target | None]]
    ) -> None:
        """Record several entries of one directory in the same way."""
        links = []
        for path, old, new in entries:
            if old is not None and old.target != new:
                self.taken.append(Taken(path, old.target))
                links.append((directory, path, old, new))
        self._keep(links)

    @contextmanager
    def in_doubt(
        self, directory: DirectoryCap, before: Mapping[str, Child], entries: Iterable[tuple[RemotePath, Target | None]]
    ) -> Iterator[None]:
        """Record what was at these paths if an edit in this context fails, and may hold all the same.

        before: an earlier listing. entries: paths of one directory, and what the edit puts there. If it does not hold, undoing it
        finds the entries as they were, and leaves them alone.
        """
        try:
            yield
        except MayHoldError as error:
            previous = error.previous
            self.note_all(
                directory, [(path, previous_child(path.names[-1], before, previous), new) for path, new in entries]
            )
            raise

    def note_move(
        self, source: tuple[DirectoryCap, RemotePath], target: tuple[DirectoryCap, RemotePath], moved: Child,
        there: Child | None,
    ) -> None:  # fmt: skip
        """Record a move. there: the entry that it replaced, or None."""
        if there is not None and there.target == moved.target:
            there = None
        if there is not None:
            self.taken.append(Taken(target[1], there.target))
        self._keep([(*target, there, moved.target), (*source, moved, None)])

    def _keep(self, links: Sequence[tuple[DirectoryCap, RemotePath, Child | None, Target | None]]) -> None:
        if self.journal is None or not links:
            return
        from grid.cli.undo.changes import ChangedLink
        from grid.directory.names import normalize_name
        from grid.directory.pack import Child

        self._is_kept = self.journal(
            [
                ChangedLink(
                    directory=directory,
                    name=normalize_name(path.names[-1]),
                    shown=path.shown,
                    old=old,
                    new=None if new is None else Child(target=new),
                )
                for directory, path, old, new in links
            ]
        )

    def to_json(self) -> list[dict[str, str]]:
        """For scripts: the path and capability of each."""
        return [{"path": each.path.shown, "cap": each.cap} for each in self.taken]

    def tell(self) -> None:
        """Print, on a terminal only, how to get the entries back."""
        if not self.taken or not sys.stderr.isatty():
            return
        what = f"{len(self.taken)} links were {self.word}. "
        if len(self.taken) == 1:
            # stdout has already reported removals, but not replacements.
            what = "" if self.word == "removed" else f"Replaced {self.taken[0].path.shown}. "
        if self._is_kept:
            click.echo(f"{what}To undo this: grid undo", err=True)
            return
        from grid.caps import KnownCap

        click.echo(f"{what}To link {'it' if len(self.taken) == 1 else 'them'} again:", err=True)
        for each in self.taken:
            if isinstance(each.target, KnownCap):
                click.echo(f"  grid ln {each.cap} {shell_word(each.path.argument)}", err=True)
            else:
                click.echo(f"  (of an unknown kind) {shell_word(each.cap)}", err=True)


def open_undo(context: click.Context, word: str = "replaced") -> Undo:
    """Open the undo record of a command. The journal is opened when there is something to write."""
    keepers: list[Keeper] = []

    def record(links: Sequence[ChangedLink]) -> bool:
        from grid.cli.undo.keeping import Keeper

        if not keepers:
            keepers.append(Keeper(context))
        return keepers[0].keep(links)

    return Undo(word, record)


async def edit_entry(directory: OpenDirectory, edit: SetChild | RemoveChild, path: RemotePath, undo: Undo) -> None:
    """Make one edit, and record the child that was at the path before, also if the edit fails and may hold all the same.

    A gateway does not report what it replaced; then it is the child found by a listing just before the edit.
    """
    from grid.directory.edits import SetChild

    new = edit.target if isinstance(edit, SetChild) else None
    before = await directory.list()
    with undo.in_doubt(directory.cap, before, [(path, new)]):
        replaced = await directory.edit([edit])
    undo.note(directory.cap, path, previous_child(edit.name, before, replaced), new)


def previous_child(name: str, before: Mapping[str, Child], replaced: object) -> Child | None:
    """The child before an edit. before: an earlier listing. replaced: what the edit returned, if it reports it."""
    from grid.directory.names import normalize_name

    name = normalize_name(name)
    return replaced.get(name) if isinstance(replaced, Mapping) else before.get(name)


def shell_word(text: str) -> str:
    """Quote the text as one word for a shell, free of terminal control characters."""
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
