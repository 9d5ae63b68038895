"""One operation of a gateway, running or ended, and the requests inside it. Pure. [spec webapi 9.2]

Owns the bound on a timeline: a long operation keeps its first requests, and marks those still under way.
"""

from __future__ import annotations

from typing import Literal

from grid.codec import base32
from grid.ports import Event
from grid.values import define, field

MAX_ROWS = 1000
"""Requests kept for one operation: enough for a hundred segments from ten servers."""

MAX_SHARES_NAMED = 16
"""Share numbers kept for one request."""

MAX_DETAIL = 200
"""Characters kept of a failure's reason, which a server may have written."""


@define(kw_only=True)
class Row:
    """One request to a server, or a moment, whose start and end are equal. Times are seconds since the operation began.

    what: the request's kind. outcome: "" while under way, then answer, fail or cancel; phase or reject for moments.
    """

    what: str
    began_s: float
    ended_s: float | None = None
    server_id: str = ""
    share_numbers: tuple[int, ...] = ()
    count: int = 0
    outcome: str = ""
    detail: str = ""

    def to_json(self) -> dict[str, object]:
        """The row as pages and programs receive it."""
        return {
            "what": self.what,
            "began": round(self.began_s, 6),
            "ended": None if self.ended_s is None else round(self.ended_s, 6),
            "server": self.server_id,
            "shares": list(self.share_numbers),
            "bytes": self.count,
            "outcome": self.outcome,
            "detail": self.detail,
        }


@define
class Timeline:
    """The rows of one operation, in the order in which they began. dropped: count of requests beyond the limit."""

    began_at: float
    rows: list[Row] = field(factory=list)
    dropped: int = 0
    _open: dict[int, Row] = field(factory=dict)

    def add(self, event: Event) -> None:
        """Take in a plan's event."""
        match event.what:
            case "send" if event.server_id is not None:
                if event.request_index == 0:
                    self._open.clear()  # Another plan numbers its requests from zero.
                self._begin(event)
            case "answer" | "fail" | "cancel" if event.server_id is not None:
                row = self._open.pop(event.request_index, None)
                if row is not None:
                    row.ended_s, row.outcome = self._since(event), event.what
                    if event.what == "fail":
                        row.detail = event.detail[:MAX_DETAIL]
            case "phase" | "reject":
                row = self._begin(event)
                if row is not None:
                    row.ended_s, row.outcome, row.detail = row.began_s, event.what, event.detail[:MAX_DETAIL]
                    row.what = event.what

    def _begin(self, event: Event) -> Row | None:
        if len(self.rows) >= MAX_ROWS:
            self.dropped += 1
            return None
        row = Row(
            what=event.detail[:MAX_DETAIL],
            began_s=self._since(event),
            server_id=str(event.server_id or ""),
            share_numbers=tuple(event.share_numbers[:MAX_SHARES_NAMED]),
            count=event.count,
        )
        self.rows.append(row)
        if event.what == "send":
            self._open[event.request_index] = row
        return row

    def _since(self, event: Event) -> float:
        return max(0.0, event.at - self.began_at)


Kind = Literal["upload", "download", "mapupdate", "publish", "retrieve"]
Outcome = Literal["active", "done", "failed", "cancelled"]

KEPT: dict[Kind, int] = {"upload": 10, "download": 10, "mapupdate": 20, "publish": 20, "retrieve": 40}
"""How many ended operations of each kind are kept. [spec webapi 9.2]"""

SHORT: dict[Kind, str] = {
    "upload": "up",
    "download": "down",
    "mapupdate": "mapupdate",
    "publish": "publish",
    "retrieve": "retrieve",
}
"""The short names of the kinds in addresses."""

KIND_OF: dict[str, Kind] = {short: kind for kind, short in SHORT.items()}


@define(kw_only=True)
class Times:
    """When an operation began, ended and was last reported, by Clock.now(). started_at: its beginning in Unix time."""

    started_at: float
    began_at: float
    ended_at: float | None = None
    shown_at: float = 0.0

    @property
    def seconds(self) -> float | None:
        """How long it took in seconds; None while it is active."""
        return None if self.ended_at is None else self.ended_at - self.began_at


@define
class Progress:
    """The progress of an operation. received: bytes of an upload from its client. count: bytes moved.

    hashed: the finished fraction of an upload's first pass. fraction: that of the operation itself.
    """

    received: int = 0
    count: int = 0
    hashed: float = 0.0
    fraction: float = 0.0
    _of_plan: int = 0
    _before_plan: int = 0

    def add(self, event: Event, size: int | None) -> None:
        """Take in a progress event. size: bytes to move."""
        part = min(1.0, event.count / event.total)
        if event.detail == "hashing":
            self.hashed = part
        elif event.detail != "verifying":
            self.hashed, self.fraction = 1.0, part
            if event.detail != "shares":
                self._move(event.count, size)

    def _move(self, count: int, size: int | None) -> None:
        """Count bytes that a plan has moved. The next plan of a read starts again at zero."""
        if count < self._of_plan:
            self._before_plan += self._of_plan
        self._of_plan = count
        self.count = self._before_plan + count
        if size:
            self.fraction = min(1.0, self.count / size)

    def complete(self, size: int | None) -> None:
        """Set the progress to 100 percent."""
        self.hashed = self.fraction = 1.0
        if size is not None:
            self.count = size


@define(kw_only=True)
class Subject:
    """What an operation concerns. label: the client's own name for the operation. is_directory: whether it reads or
    writes one.
    """

    label: str = ""
    is_directory: bool = False


@define(kw_only=True, eq=False)
class Operation:
    """One operation. size: bytes to move, None while unknown. storage_index: in base32.

    map: its running search for shares, if any.
    """

    kind: Kind
    number: int
    times: Times
    timeline: Timeline
    progress: Progress = field(factory=Progress)
    size: int | None = None
    is_listed: bool = True
    storage_index: str | None = None
    outcome: Outcome = "active"
    status: str = "Active"
    mode: str = ""
    phase: str = ""
    map: Operation | None = None
    subject: Subject = field(factory=Subject)

    @property
    def key(self) -> str:
        """Kind and number."""
        return f"{self.kind}-{self.number}"

    @property
    def path(self) -> str:
        """Its path below /status/."""
        return f"{SHORT[self.kind]}-{self.number}"

    @property
    def is_directory_read(self) -> bool:
        """Whether it only reads a directory, as every page and path does, or looks for a directory's shares."""
        return self.subject.is_directory and self.kind in ("retrieve", "download", "mapupdate")

    @property
    def is_active(self) -> bool:
        """Whether it is still running."""
        return self.outcome == "active"

    def name(self, storage_index: bytes) -> None:
        """Set the storage index, now that it is known."""
        self.storage_index = base32.encode(storage_index)

    def hear(self, event: Event) -> None:
        """Take in a plan's event."""
        self.timeline.add(event)
        if event.what == "phase":
            self.phase = event.detail
        elif event.what == "progress" and event.total > 0:
            self.progress.add(event, self.size)

    def begins_map(self, event: Event) -> bool:
        """Whether a plan starts to search for the shares of a mutable file: its first request reads the beginning of
        every share.
        """
        return (
            self.kind in ("retrieve", "publish")
            and event.what == "send"
            and event.request_index == 0
            and event.detail == "ReadFronts"
        )

    def ends_map(self, event: Event) -> bool:
        """Whether another plan begins."""
        return event.what == "send" and event.request_index == 0

    def end(self, now: float, outcome: Outcome, status: str) -> None:
        """Mark the operation as ended."""
        self.times.ended_at, self.outcome, self.status = now, outcome, status
        if outcome == "done":
            self.progress.complete(self.size)

    def to_json(self) -> dict[str, object]:
        """The operation as 1.20 lists it, with additional keys."""
        size: object = "-NA-" if self.kind == "mapupdate" else self.size or 0
        progress, seconds = self.progress, self.times.seconds
        found: dict[str, object] = {
            "type": self.kind,
            "storage-index-string": self.storage_index,
            "total-size": size,
            "status": self.status,
            "id": self.path,
            "outcome": self.outcome,
            "started": self.times.started_at,
            "seconds": None if seconds is None else round(seconds, 6),
            "bytes": progress.count,
            "phase": self.phase,
            "received": progress.received,
            "label": self.subject.label,
        }
        match self.kind:
            case "upload":
                found |= {
                    "progress-hash": progress.hashed,
                    "progress-ciphertext": progress.fraction,
                    "progress-encode-push": progress.fraction,
                }
            case "mapupdate":
                found["mode"] = self.mode
            case _:
                found["progress"] = progress.fraction
        return found

    def to_whole_json(self) -> dict[str, object]:
        """The same, with every request of its timeline."""
        rows = [row.to_json() for row in self.timeline.rows]
        return {**self.to_json(), "events": rows, "events-dropped": self.timeline.dropped}
