"""Shows progress: a bar on a terminal, JSON lines if requested, otherwise nothing.

There are two displays: one for a single file, driven by the engines' events (`ProgressDisplay`), and one for many
files, driven by a tally (`TransferDisplay`). Both write to stderr, and import rich only to draw a bar.
"""

from __future__ import annotations

import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from grid.cli.terminal.failures import dated
from grid.node.redaction import one_line
from grid.ports import Event
from grid.values import define, field, frozen

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

FILE_COST = 64 * 1024
"""The cost of a file regardless of its size, in bytes; used for estimates only."""

_ESTIMATE_AFTER_S = 2.0
_ESTIMATE_AFTER_PART = 0.005
_ESTIMATE_ANYWAY_AFTER_S = 20.0
"""Seconds after which an estimate is shown in any event; before, the first bytes may still wait for connections."""

_SHOW_AFTER_S = 0.4
"""Shorter operations show no bar."""
_BAR_EVERY_S = 0.1
_LINE_EVERY_S = 0.5
_SHARES = ("verifying", "shares")
"""Details of progress counted in shares."""
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


@define
class PhaseRate:
    """The bytes done of one phase, and their average rate since the phase began."""

    began_at: float
    done: int = 0
    total: int = 0

    def rate(self, now: float) -> float:
        """Bytes per second."""
        return self.done / max(now - self.began_at, 1e-6)

    def remaining_s(self, now: float) -> float | None:
        """Seconds until the phase ends at this rate; None while that would be a guess."""
        return remaining_s_of(self.done, self.total, now - self.began_at)


@define
class Tally:
    """Counts of a running copy. total_*: the whole job, including skipped files. Times are monotonic seconds.

    failures: those that the result names once more.
    """

    began_at: float
    total_files: int = 0
    total_bytes: int = 0
    files: int = 0
    byte_count: float = 0.0
    moved_bytes: float = 0.0
    copied: int = 0
    linked: int = 0
    skipped: int = 0
    directories: int = 0
    failed: int = 0
    failures: list[str] = field(factory=list)

    def advance(self, byte_count: float) -> None:
        """Count bytes sent or received."""
        self.byte_count += byte_count
        self.moved_bytes += byte_count

    def finish(self, size: int, counted: float = 0.0) -> None:
        """Count a finished file. counted: its bytes that `advance` has already counted."""
        self.files += 1
        self.byte_count += size - counted

    def fail(self, what: str, *, is_kept: bool = True) -> None:
        """Count a failure. what: one line that explains it."""
        self.failed += 1
        if is_kept:
            self.failures.append(what)

    def byte_rate(self, now: float) -> float:
        """Bytes per second, without skipped files."""
        return self.moved_bytes / max(now - self.began_at, 1e-6)

    def file_rate(self, now: float) -> float:
        """Files per second."""
        return self.files / max(now - self.began_at, 1e-6)

    def remaining_s(self, now: float) -> float | None:
        """Seconds until everything is done at the current rate; None while that would be a guess."""
        done = self.byte_count + FILE_COST * self.files
        return remaining_s_of(done, self.total_bytes + FILE_COST * self.total_files, now - self.began_at)


@frozen
class Picture:
    """What a bar shows: the text before it, its filled fraction, the text after it."""

    title: str
    done: float
    total: float
    details: str


class Display(ABC):
    """A context manager around an operation, which decides when to show progress. Subclasses decide what to show."""

    def __init__(self, *, as_json: bool, hidden: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        """hidden: show no progress at all."""
        self._clock = clock
        self._as_json = as_json
        self._has_lines = as_json and not hidden
        self._has_bar = not as_json and not hidden and sys.stderr.isatty()
        self._began_at = clock()
        self._shown_at = -1e9
        self._is_paused = False
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Leave the bar on the screen, since something else is printed next. A later event draws a new one."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = self._task = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hide the bar while a question is open on the terminal."""
        self.stop()
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False

    @abstractmethod
    def _to_json(self, now: float) -> dict[str, object]:
        """The JSON line for programs."""

    @abstractmethod
    def _picture(self, now: float) -> Picture:
        """The contents of the bar."""

    def _show(self, *, ended: bool) -> None:
        """Show the progress, unless that happened a moment ago."""
        now = self._clock()
        if self._has_lines and (ended or now - self._shown_at >= _LINE_EVERY_S):
            self._shown_at = now
            print(json.dumps(self._to_json(now)), file=sys.stderr, flush=True)
        elif (
            self._has_bar and now - self._began_at >= _SHOW_AFTER_S and (ended or now - self._shown_at >= _BAR_EVERY_S)
        ):
            self._shown_at = now
            self._draw(now)

    def _draw(self, now: float) -> None:
        if self._is_paused:
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        picture = self._picture(now)
        if self._progress is None:
            self._progress = Progress(
                TextColumn("{task.description:8}"), BarColumn(), TextColumn("{task.fields[details]}"),
                console=Console(stderr=True), auto_refresh=False, redirect_stdout=False, redirect_stderr=False,
            )  # fmt: skip
            self._progress.start()
        if self._task is None:
            self._task = self._progress.add_task("", details="")
        self._progress.update(
            self._task,
            description=picture.title,
            completed=picture.done,
            total=picture.total,
            details=picture.details,
        )
        self._progress.refresh()


class ProgressDisplay(Display):
    """Shows the phases of one file, as the operation's observer. Verification is counted in bytes and shares."""

    def __init__(self, *, as_json: bool, hidden: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(as_json=as_json, hidden=hidden, clock=clock)
        self._phase = ""
        self._rate = PhaseRate(self._began_at)
        self._shares: tuple[int, int] | None = None

    def stop(self) -> None:
        """Leave the bar on the screen; the next event starts a new phase."""
        super().stop()
        self._phase, self._shares = "", None
        self._rate = PhaseRate(self._clock())

    def __call__(self, event: Event) -> None:
        """Take in an event of an engine."""
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
            self._rate = PhaseRate(self._clock(), total=total)
            self._shares = self._task = None

    def _advance(self, done: int, total: int) -> None:
        self._rate.done, self._rate.total = done, total
        self._show(ended=done >= total)

    def _to_json(self, now: float) -> dict[str, object]:
        rate = self._rate
        line: dict[str, object] = {
            "event": "progress",
            "phase": self._phase or "reading",
            "done": rate.done,
            "total": rate.total,
            "rate": round(rate.rate(now)),
            "eta_s": _rounded(rate.remaining_s(now)),
        }
        if self._shares is not None:
            line |= {"shares": self._shares[0], "total_shares": self._shares[1]}
        return line

    def _picture(self, now: float) -> Picture:
        shares = "" if self._shares is None else f" {self._shares[0]}/{self._shares[1]} shares"
        rate = self._rate
        details = _describe_bytes(rate.done, rate.total, rate.rate(now)) + describe_rest(rate.remaining_s(now))
        return Picture((self._phase or "reading") + shares, rate.done, rate.total, details)


class TransferDisplay(Display):
    """Shows the tally of a copy. Call `update` whenever it changes. is_dated: warnings begin with the time, for a log."""

    def __init__(
        self,
        *,
        as_json: bool,
        hidden: bool = False,
        is_dated: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(as_json=as_json, hidden=hidden, clock=clock)
        self._is_dated = is_dated
        self.tally = Tally(began_at=self._began_at)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._draw(self._clock())
        super().__exit__(kind, error, trace)

    def say(self, line: str) -> None:
        """Print a line on stderr, above the bar."""
        if self._progress is not None:
            self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def fail(self, line: str, *, is_kept: bool = True) -> None:
        """Count a failure and print the reason. is_kept: the result names it once more."""
        self.tally.fail(line, is_kept=is_kept)
        self.warn(line)

    def warn(self, line: str) -> None:
        """Print a warning, as a JSON object if JSON was requested."""
        line = one_line(line)
        if self._as_json:
            self.say(json.dumps({"event": "warning", "message": line}))
        else:
            self.say(f"WARNING: {dated(line) if self._is_dated else line}")

    def progress(self) -> tuple[int, float]:
        """Files copied and bytes moved so far."""
        return self.tally.copied, self.tally.moved_bytes

    def update(self) -> None:
        """Show the tally, unless that happened a moment ago."""
        self._show(ended=self.tally.files >= self.tally.total_files)

    def _to_json(self, now: float) -> dict[str, object]:
        return describe_progress(self.tally, now)

    def _picture(self, now: float) -> Picture:
        tally = self.tally
        title, _, details = describe_line(tally, now).partition(", ")
        return Picture(title, tally.byte_count, tally.total_bytes or 1, details)


def remaining_s_of(done: float, total: float, elapsed_s: float) -> float | None:
    """Seconds for the rest at the current rate; None if too little is done to tell, unless everything is done."""
    if done <= 0:
        return None
    is_known = elapsed_s >= _ESTIMATE_AFTER_S and done >= _ESTIMATE_AFTER_PART * total
    if not is_known and elapsed_s < _ESTIMATE_ANYWAY_AFTER_S and done < total:
        return None
    return max(total - done, 0.0) * elapsed_s / done


def describe_progress(tally: Tally, now: float) -> dict[str, object]:
    """The tally as a JSON object."""
    return {
        "event": "progress",
        "files": tally.files,
        "total_files": tally.total_files,
        "done": round(tally.byte_count),
        "total": tally.total_bytes,
        "rate": round(tally.byte_rate(now)),
        "file_rate": round(tally.file_rate(now), 1),
        "failed": tally.failed,
        "eta_s": _rounded(tally.remaining_s(now)),
    }


def describe_line(tally: Tally, now: float) -> str:
    """The tally as short text."""
    moved = _describe_bytes(
        tally.byte_count, tally.total_bytes, tally.byte_rate(now), f"{tally.file_rate(now):.0f} files/s"
    )
    return f"{tally.files}/{tally.total_files} files, {moved}{describe_rest(tally.remaining_s(now))}"


def _describe_bytes(done: float, total: float, rate: float, between: str = "") -> str:
    """Bytes done, total and rate. between: text before the rate."""
    scale, unit = _unit(total)
    rate_scale, rate_unit = _unit(rate)
    places = 0 if scale == 1 else 1
    parts = [f"{done / scale:.{places}f}/{total / scale:.{places}f} {unit}"]
    parts += [between] if between else []
    return ", ".join([*parts, f"{rate / rate_scale:.{0 if rate_scale == 1 else 1}f} {rate_unit}/s"])


def _unit(size: float) -> tuple[int, str]:
    """The unit, and its size, that shows a number of bytes with one to three digits before the point."""
    power = 0
    while power < len(_UNITS) - 1 and size >= 1000 ** (power + 1):
        power += 1
    return 1000**power, _UNITS[power]


def describe_rest(seconds: float | None) -> str:
    """The remaining time as a suffix; empty if unknown."""
    if seconds is None:
        return ""
    whole = int(seconds + 0.5)
    hours, rest = divmod(whole, 3600)
    return f", {hours}:{rest // 60:02}:{rest % 60:02} left" if hours else f", {rest // 60}:{rest % 60:02} left"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
