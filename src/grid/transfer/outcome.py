"""What a transfer is to do, and what it tells: its plan, callbacks while it runs, and its outcome.

Values only. They have names of files, and reasons, but no contents, capabilities or keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from attrs import define, field, frozen

from grid.errors import GridError
from grid.transfer.choices import STREAMS, Comparison, Mode
from grid.transfer.ends import Entry, LeftOut
from grid.transfer.selection import Selection


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


@define
class Outcome:
    """The result. failures, left_out: names, and reasons. planned: of a dry run. found: files of all sources."""

    found: int = 0
    is_dry_run: bool = False
    copied: int = 0
    linked: int = 0
    unchanged: int = 0
    removed: int = 0
    sent_bytes: int = 0
    failures: list[tuple[str, GridError | OSError]] = field(factory=list)
    left_out: list[LeftOut] = field(factory=list)
    planned: list[tuple[str, str]] = field(factory=list)


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
