"""How far an operation has come: a bar on a terminal, JSON lines where they were asked for, else nothing.

An observer of the engines' events; it writes to stderr, and imports rich only when there is a bar to show. What is
done is counted in bytes, and in shares too where shares are verified.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
_SHARES = ("verifying", "shares")
"""Details of progress that is counted in shares."""


@define
class Pace:
    """The bytes done of one phase, and how fast: the average since the phase began."""

    began_at: float
    done: int = 0
    total: int = 0

    def rate(self, now: float) -> float:
        """Bytes a second."""
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
        self._shares: tuple[int, int] | None = None
        self._is_paused = False
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Leave what is shown as it is: something else is written now. A later event shows a new bar."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = self._task = None
        self._phase, self._shares = "", None
        self._pace = Pace(self._clock())

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Keep the bar away, so that something else can be asked on the terminal."""
        self.stop()
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False

    def __call__(self, event: Event) -> None:
        """Take one event of an engine."""
        if event.what == "phase":
            self._begin(event.detail, event.total)
        elif event.what == "verified":
            self._begin("verifying", event.total)
            self._advance(event.count, event.total)
        elif event.what == "progress" and event.detail == "verifying":
            self._begin("verifying", 0)
            self._shares = (event.count, event.total)
        elif event.what == "progress" and event.detail not in _SHARES:
            self._advance(event.count, event.total)

    def _begin(self, phase: str, total: int) -> None:
        if phase != self._phase:
            self._phase = phase
            self._pace = Pace(self._clock(), total=total)
            self._shares = self._task = None

    def _advance(self, done: int, total: int) -> None:
        self._pace.done, self._pace.total = done, total
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
        line: dict[str, object] = {
            "event": "progress",
            "phase": self._phase or "reading",
            "done": self._pace.done,
            "total": self._pace.total,
            "rate": round(self._pace.rate(now)),
            "eta_s": None if remaining is None else round(remaining, 1),
        }
        if self._shares is not None:
            line |= {"shares": self._shares[0], "total_shares": self._shares[1]}
        print(json.dumps(line), file=sys.stderr, flush=True)

    def _draw(self) -> None:
        if self._is_paused:
            return
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
                redirect_stdout=False, redirect_stderr=False,
            )  # fmt: skip
            self._progress.start()
        if self._task is None:
            self._task = self._progress.add_task(self._describe(), total=self._pace.total)
        self._progress.update(
            self._task, description=self._describe(), completed=self._pace.done, total=self._pace.total
        )
        self._progress.refresh()

    def _describe(self) -> str:
        shares = "" if self._shares is None else f" {self._shares[0]}/{self._shares[1]} shares"
        return (self._phase or "reading") + shares
