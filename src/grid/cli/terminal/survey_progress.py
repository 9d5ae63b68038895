"""How far a walk over a tree has come: objects, shares, bytes, and the time that is left once that can be known.

A walk does not know how much there is until it has read every directory. Until then the number of objects found so far is
shown as what it is, and no time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from grid.cli.terminal.columns import shown_size
from grid.cli.terminal.progress import Display, Picture, describe_rest, remaining_s_of

if TYPE_CHECKING:
    from grid.directory.walk import Visited

T = TypeVar("T")


class SurveyDisplay(Display):
    """Counts what was looked at. verb: what happens to an object. On a terminal there is a bar, elsewhere nothing."""

    def __init__(self, verb: str, *, hidden: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(as_json=False, hidden=hidden, clock=clock)
        self._verb = verb
        self._found = self._unread = 1
        self.objects = self.shares = self.size = 0

    def take(self, visited: Visited, *, shares: int = 0) -> None:
        """Count one object; shares: how many of it were found or verified."""
        from grid.caps import DirectoryCap

        self.objects += 1
        self.shares += shares
        self.size += visited.size or 0
        if visited.is_directory:
            children = visited.children or {}
            self._found += len(children)
            self._unread += sum(isinstance(child.target, DirectoryCap) for child in children.values()) - 1
        self._show(ended=False)

    def echo(self, line: str) -> None:
        """Print a line of the result on stdout: above the bar, where both are on one terminal."""
        if self._progress is not None and sys.stdout.isatty():
            self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(line)

    async def watch(self, visits: AsyncGenerator[Visited, None]) -> AsyncGenerator[Visited, None]:
        """The visits, each counted."""
        async for visited in visits:
            self.take(visited)
            yield visited

    @property
    def remaining_s(self) -> float | None:
        """Seconds until the rest is done; None while directories are unread, or too little is done to tell."""
        if self._unread > 0 or self._found < self.objects:
            return None
        return remaining_s_of(self.objects, self._found, self._clock() - self._began_at)

    def _to_json(self, now: float) -> dict[str, object]:
        raise AssertionError("the lines of a survey are its progress")

    def _picture(self, now: float) -> Picture:
        total = max(self._found, self.objects)
        mark = "+" if self._unread > 0 else ""
        parts = [f"{self.objects}/{total}{mark} objects"]
        parts += [f"{self.shares} shares"] if self.shares else []
        parts.append(shown_size(self.size))
        parts.append(f"{self.objects / max(now - self._began_at, 1e-6):.0f} objects/s")
        return Picture(self._verb, self.objects, total, ", ".join(parts) + describe_rest(self.remaining_s))
