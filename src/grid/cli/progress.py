"""How far an operation has come: a bar on a terminal, JSON lines where they were asked for, else nothing.

An observer of the engines' events; it writes to stderr, and imports rich only when there is a bar to show.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from attrs import define

from grid.ports import Event

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_SHOW_AFTER_S = 0.4
"""An operation shorter than this shows no bar."""
_BAR_EVERY_S = 0.1
_LINE_EVERY_S = 0.5


@define
class Pace:
    """The octets done of one phase, and how fast: the average since the phase began."""

    began_at: float
    done: int = 0
    total: int = 0

    def rate(self, now: float) -> float:
        """Octets a second."""
        return self.done / max(now - self.began_at, 1e-6)

    def remaining_s(self, now: float) -> float | None:
        """Seconds until the phase ends at this rate; None while nothing is known."""
        return (self.total - self.done) / self.rate(now) if self.done else None


class ProgressDisplay:
    """Use it as a context manager around the operation, and as the operation's observer."""

    def __init__(self, *, as_json: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._as_json = as_json
        self._bar = not as_json and sys.stderr.isatty()
        self._began_at = clock()
        self._shown_at = -1e9
        self._phase = ""
        self._pace = Pace(self._began_at)
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.refresh()
            self._progress.stop()

    def __call__(self, event: Event) -> None:
        """Take one event of an engine."""
        if event.what == "phase" and event.detail != self._phase:
            self._phase = event.detail
            self._pace = Pace(self._clock(), total=event.total)
            self._task = None
        elif event.what == "progress":
            self._pace.done, self._pace.total = event.count, event.total
            self._show(self._clock())

    def _show(self, now: float) -> None:
        ended = self._pace.done >= self._pace.total
        if self._as_json and (ended or now - self._shown_at >= _LINE_EVERY_S):
            self._shown_at = now
            self._print_line(now)
        elif self._bar and now - self._began_at >= _SHOW_AFTER_S and (ended or now - self._shown_at >= _BAR_EVERY_S):
            self._shown_at = now
            self._draw()

    def _print_line(self, now: float) -> None:
        remaining = self._pace.remaining_s(now)
        line = {
            "event": "progress",
            "phase": self._phase or "reading",
            "done": self._pace.done,
            "total": self._pace.total,
            "rate": round(self._pace.rate(now)),
            "eta_s": None if remaining is None else round(remaining, 1),
        }
        print(json.dumps(line), file=sys.stderr, flush=True)

    def _draw(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        if self._progress is None:
            self._progress = Progress(
                TextColumn("{task.description:8}"), BarColumn(), DownloadColumn(binary_units=False),
                TransferSpeedColumn(), TimeRemainingColumn(), console=Console(stderr=True), auto_refresh=False,
            )  # fmt: skip
            self._progress.start()
        if self._task is None:
            self._task = self._progress.add_task(self._phase or "reading", total=self._pace.total)
        self._progress.update(self._task, completed=self._pace.done)
        self._progress.refresh()
