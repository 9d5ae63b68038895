"""What a transfer is to do, and what it tells: its plan, callbacks while it runs, and its outcome.

Values only. They have names of files, and reasons, but no contents, capabilities or keys. However many files there are,
an outcome takes little memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, assert_never

from grid.errors import GridError
from grid.transfer.choices import STREAMS, Comparison, Mode
from grid.transfer.ends import Entry, LeftOut
from grid.transfer.selection import Selection
from grid.transfer.spool import Spool
from grid.values import define, field, frozen

Failure = tuple[str, GridError | OSError]
"""A name, and the reason."""

Counted = Literal["copied", "linked", "unchanged"]
"""What became of a file that is in place. linked: without sending it."""


class GapError(GridError):
    """Something of a source could not be listed, so files may be missing."""


def failure_of(found: LeftOut, selection: Selection) -> GridError | None:
    """The error for what could not be listed, or is lost; None for what is only left out, or not selected."""
    if found.is_gap and not selection.excludes(found.name, is_directory=True):
        return GapError(f"{found.name}: it could not be listed: {found.why}")
    if found.is_lost and selection.takes(found.name):
        return GridError(f"{found.name!r}: it cannot be copied: {found.why}")
    return None


@frozen(kw_only=True)
class Plan:
    """The options of a transfer. keeps_times: both ends preserve files' times to the millisecond.

    chunk_size: None for a size that suits each file.
    """

    mode: Mode = "auto"
    chunk_size: int | None = 20 * 2**20
    transfers: int | Literal["auto"] = 8
    streams: int = STREAMS
    max_memory: int = 96 * 2**20
    retries: int = 4
    verify: bool = False
    dry_run: bool = False
    delete: bool = False
    comparison: Comparison = "time"
    keeps_times: bool = False
    selection: Selection = field(factory=Selection)


def _left_out() -> Spool[LeftOut]:
    return Spool(lambda found: [found.name, found.why, found.is_gap], lambda values: LeftOut(*values))


def _failures() -> Spool[Failure]:
    return Spool(_pack_failure, _parse_failure)


def _planned() -> Spool[tuple[str, str]]:
    return Spool(list, lambda values: (values[0], values[1]))


@define
class Outcome:
    """The result. failures, left_out: names, and reasons. found: files of all sources.

    planned: of a dry run, what to do and the name. to_send, to_remove: how many of these there are.
    """

    found: int = 0
    is_dry_run: bool = False
    copied: int = 0
    linked: int = 0
    unchanged: int = 0
    removed: int = 0
    sent_bytes: int = 0
    to_send: int = 0
    to_remove: int = 0
    failures: Spool[Failure] = field(factory=_failures)
    left_out: Spool[LeftOut] = field(factory=_left_out)
    planned: Spool[tuple[str, str]] = field(factory=_planned)

    def fail(self, name: str, error: GridError | OSError) -> None:
        """Add a failure. The error lets go of the frames that it passed through, and of the contents in their variables."""
        _let_go(error)
        self.failures.append((name, error))

    def count(self, what: Counted) -> None:
        """Count a file that is in place."""
        match what:
            case "copied":
                self.copied += 1
            case "linked":
                self.linked += 1
            case "unchanged":
                self.unchanged += 1
            case _:
                assert_never(what)

    def plan_to_send(self, name: str) -> None:
        """Add a file that would be sent."""
        self.to_send += 1
        self.planned.append(("send", name))

    def plan_to_remove(self, name: str) -> None:
        """Add a file that would be removed."""
        self.to_remove += 1
        self.planned.append(("remove", name))


@frozen(kw_only=True)
class Observer:
    """Callbacks for progress. found: a file to send, with its size. sent: bytes. ended: one file, with its size.

    began, left: a file is in transit between the two calls. stored: it is in place.
    """

    found: Callable[[int], None] = lambda size: None
    sent: Callable[[int], None] = lambda count: None
    ended: Callable[[int], None] = lambda size: None
    warn: Callable[[str], None] = lambda line: None
    began: Callable[[Entry], None] = lambda entry: None
    left: Callable[[Entry], None] = lambda entry: None
    stored: Callable[[Entry], None] = lambda entry: None


def _let_go(error: BaseException) -> None:
    waiting, seen = [error], {id(error)}
    while waiting:
        each = waiting.pop()
        each.__traceback__ = None
        for other in (each.__cause__, each.__context__, *getattr(each, "causes", ())):
            if isinstance(other, BaseException) and id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)


def _pack_failure(failure: Failure) -> object:
    name, error = failure
    if isinstance(error, OSError) and error.strerror:
        return [name, error.errno, error.strerror, error.filename if isinstance(error.filename, str) else None]
    return [name, None, str(error), None]


def _parse_failure(values: list[Any]) -> Failure:
    name, code, text, path = values
    if code is None:
        return name, GridError(text)
    return name, OSError(code, text, path) if path is not None else OSError(code, text)
