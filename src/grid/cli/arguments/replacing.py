"""Whether what is there already may be replaced: `-n`, `-i` and `-u`, as `cp` has them.

Owns the options, their contradictions, and the question on the terminal. It replaces nothing itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, TypeVar, cast

import click
from attrs import define, field

from grid.directory.metadata import seconds_in

if TYPE_CHECKING:
    from grid.cli.terminal.asking import Asker

F = TypeVar("F", bound=Callable[..., object])

_OPTIONS = {
    "n": (("-n", "--no-clobber"), "no_clobber", "Never replace what is there."),
    "i": (("-i", "--interactive"), "interactive", "Ask before anything is replaced; takes a terminal."),
    "u": (("-u", "--update"), "update", "Replace only what is older."),
}


def replace_options(letters: str = "niu") -> Callable[[F], F]:
    """The options of these letters, which the command gets as its argument `policy`. UsageError for contradictions."""

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
    """UsageError if a URL was given as `tahoe -u` takes one."""
    for value in values:
        texts = value if isinstance(value, tuple) else (value,)
        if any(isinstance(text, str) and text.startswith(("http://", "https://")) for text in texts):
            raise click.UsageError(
                "-u replaces only what is older; for a gateway's URL it goes before the command: grid --gateway URL COMMAND"
            )


@define
class ReplacePolicy:
    """What the options say. Without any, everything is replaced. quiet: entered while a question is open."""

    never: bool = False
    ask: bool = False
    newer: bool = False
    quiet: Callable[[], AbstractContextManager[object]] = nullcontext
    _asker: Asker | None = field(default=None, repr=False)

    @property
    def is_given(self) -> bool:
        """Whether there is anything to decide."""
        return self.never or self.ask or self.newer

    async def permits(self, shown: str, *, new_time: float | None, old_time: float | None) -> bool:
        """Whether what is at `shown` may be replaced. Times are Unix times; what has none is never taken for newer."""
        if self.never:
            return False
        if self.newer and (new_time is None or old_time is None or new_time <= old_time):
            return False
        if not self.ask:
            return True
        if self._asker is None:
            from grid.cli.terminal.asking import Asker

            self._asker = Asker(self.quiet)
        return await self._asker.confirm(f"replace {shown}?")


def make_policy(*, no_clobber: bool = False, interactive: bool = False, update: bool = False) -> ReplacePolicy:
    """The policy of the options; UsageError if they contradict each other, or if nobody can be asked."""
    if no_clobber and (interactive or update):
        other = "-i" if interactive else "-u"
        raise click.UsageError(f"-n and {other} contradict each other: with -n nothing is ever replaced")
    if interactive and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("-i asks on the terminal, and there is none: use -n or -u, or neither")
    return ReplacePolicy(never=no_clobber, ask=interactive, newer=update)


def time_of(metadata: Mapping[str, object]) -> float | None:
    """The Unix time of a link: the file's own where a backup noted it, else when the link was made or changed.

    A mutable file's contents change without its link.
    """
    tahoe = metadata.get("tahoe")
    times = tahoe if isinstance(tahoe, Mapping) else {}
    for value in (metadata.get("mtime"), times.get("linkmotime"), times.get("linkcrtime"), metadata.get("ctime")):
        seconds = seconds_in(value)
        if seconds is not None:
            return seconds
    return None
