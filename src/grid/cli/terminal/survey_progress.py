"""Progress of a walk over a tree: objects, shares, bytes, and the time left once it can be estimated.

A walk knows the total only after it has read every directory. Until then, the bar shows the number of objects found,
and no time.
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
    """Counts processed objects. verb: what happens to each. A terminal shows a bar; otherwise nothing is shown."""

    def __init__(self, verb: str, *, hidden: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(as_json=False, hidden=hidden, clock=clock)
        self._verb = verb
        self._found = self._unread = 1
        self.objects = self.shares = self.size = 0

    def take(self, visited: Visited, *, shares: int = 0) -> None:
        """Count one object. shares: how many of its shares were found or verified."""
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
        """Print a line of the result on stdout: above the bar if both are on the same terminal."""
        if self._progress is not None and sys.stdout.isatty():
            self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(line)

    async def watch(self, visits: AsyncGenerator[Visited, None]) -> AsyncGenerator[Visited, None]:
        """Pass the visits on and count each."""
        async for visited in visits:
            self.take(visited)
            yield visited

    @property
    def remaining_s(self) -> float | None:
        """Seconds until the end; None while directories are unread or too little is done to tell."""
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
