"""What happened inside one operation, request by request, for those who draw it. Pure.

Owns the bound on it: of a long operation the first requests are kept, and what is still under way is told apart.
"""

from __future__ import annotations

from attrs import define, field

from grid.ports import Event

MAX_ROWS = 1000
"""Requests kept of one operation: a hundred segments from ten servers."""

MAX_SHARES_NAMED = 16
"""Share numbers kept with one request."""

MAX_DETAIL = 200
"""Characters of a reason; one may be a server's."""


@define(kw_only=True)
class Row:
    """One request to a server, or a moment (then it ends when it begins). Seconds since the operation began.

    what: the request's kind. outcome: "" while it is under way, then answer, fail or cancel; phase or reject of moments.
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
        """As pages and programs get it."""
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
    """The rows of one operation, in the order in which they began. dropped: requests that were too many."""

    began_at: float
    rows: list[Row] = field(factory=list)
    dropped: int = 0
    _open: dict[int, Row] = field(factory=dict)

    def add(self, event: Event) -> None:
        """Take in what a plan tells."""
        match event.what:
            case "send" if event.server_id is not None:
                if event.request_index == 0:
                    self._open.clear()  # Another plan numbers its requests anew.
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
