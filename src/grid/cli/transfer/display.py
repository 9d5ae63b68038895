"""Shows a copy's tally while it grows: a bar on a terminal, JSON lines where they were asked for, else nothing."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from grid.cli.transfer.tally import Tally
from grid.node.redaction import one_line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_SHOW_AFTER_S = 0.4
_BAR_EVERY_S = 0.1
_LINE_EVERY_S = 0.5


class TransferDisplay:
    """Use it as a context manager around the copy, and call it whenever the tally has changed. Writes to stderr."""

    def __init__(self, *, as_json: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._as_json = as_json
        self._bar = not as_json and sys.stderr.isatty()
        self._shown_at = -1e9
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._is_paused = False
        self.tally = Tally(began_at=clock())

    def __enter__(self) -> TransferDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._draw(self._clock())
            self._progress.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Keep the bar away, so that something else can be asked on the terminal."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = self._task = None
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False

    def say(self, line: str) -> None:
        """A line on stderr, above the bar."""
        if self._progress is not None:
            self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def fail(self, line: str) -> None:
        """Count something that was not copied, and say why."""
        self.tally.fail(line)
        self.warn(line)

    def warn(self, line: str) -> None:
        """Say something that a person should know, or an object of it where JSON was asked for."""
        line = one_line(line)
        self.say(json.dumps({"event": "warning", "message": line}) if self._as_json else f"WARNING: {line}")

    def update(self) -> None:
        """Show the tally if that was not done just before."""
        now = self._clock()
        ended = self.tally.files >= self.tally.total_files
        if self._as_json and (ended or now - self._shown_at >= _LINE_EVERY_S):
            self._shown_at = now
            self.say(json.dumps(describe_progress(self.tally, now)))
        elif self._bar and now - self.tally.began_at >= _SHOW_AFTER_S and now - self._shown_at >= _BAR_EVERY_S:
            self._shown_at = now
            self._draw(now)

    def _draw(self, now: float) -> None:
        if self._is_paused:
            return
        if self._progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._progress = Progress(
                TextColumn("{task.description}"), BarColumn(), console=Console(stderr=True), auto_refresh=False,
                redirect_stdout=False, redirect_stderr=False,
            )  # fmt: skip
            self._progress.start()
            self._task = self._progress.add_task("", total=1.0)
        assert self._task is not None
        total = self.tally.total_bytes or 1
        self._progress.update(
            self._task, description=describe_line(self.tally, now), completed=self.tally.byte_count, total=total
        )
        self._progress.refresh()


def describe_progress(tally: Tally, now: float) -> dict[str, object]:
    """The tally as an object for JSON."""
    remaining = tally.remaining_s(now)
    return {
        "event": "progress",
        "files": tally.files,
        "total_files": tally.total_files,
        "done": round(tally.byte_count),
        "total": tally.total_bytes,
        "rate": round(tally.byte_rate(now)),
        "file_rate": round(tally.file_rate(now), 1),
        "failed": len(tally.failures),
        "eta_s": None if remaining is None else round(remaining, 1),
    }


def describe_line(tally: Tally, now: float) -> str:
    """The tally in a few words."""
    remaining = tally.remaining_s(now)
    eta = "" if remaining is None else f", {_duration(remaining)} left"
    return (
        f"{tally.files}/{tally.total_files} files, {tally.byte_count / 1e6:.1f}/{tally.total_bytes / 1e6:.1f} MB, "
        f"{tally.file_rate(now):.0f} files/s, {tally.byte_rate(now) / 1e6:.1f} MB/s{eta}"
    )


def _duration(seconds: float) -> str:
    whole = int(seconds + 0.5)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
