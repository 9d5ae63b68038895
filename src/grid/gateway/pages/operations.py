"""The page of one operation, with its timeline as SVG: a band per server, a bar per request. Pure.

Overlapping bars of one server are stacked to show what ran in parallel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grid.gateway.history.operation import Operation, Row
from grid.gateway.pages.markup import Markup, duration_text, join, size_text, tag, time_text
from grid.gateway.pages.shell import card, document, facts, nothing_here, notice
from grid.plural import counted
from grid.values import frozen

_BAR, _STEP, _PAD = 10, 12, 8
_LEAST_WIDTH = 0.3
"""Percent of the timeline that a bar takes at least, to be seen."""

_MAX_BARS = 600
_MAX_STACK = 8
_CLASSES = {"": "run", "answer": "ok", "fail": "fail", "cancel": "late", "reject": "fail"}
_WORDS = {"": "in progress", "answer": "answered", "fail": "failed", "cancel": "no longer needed", "reject": "refused"}


@frozen
class _Placed:
    row: Row
    lane: int


@frozen
class _Band:
    """A server's part of the timeline."""

    line: Markup
    label: Markup
    bars: Markup


def draw_timeline(rows: Sequence[Row], names: Mapping[str, str]) -> Markup:
    """Draw the timeline. rows: requests and moments, in the order in which they began. names: nicknames of servers."""
    shown = [row for row in rows if row.server_id][:_MAX_BARS]
    if not shown:
        return nothing_here("No requests yet", "Requests to servers appear here as they are sent.", "server")
    now = max(row.ended_s if row.ended_s is not None else row.began_s for row in rows)
    span = max(now * 1.02, 1e-3)
    bands, y = [], 26
    for server in dict.fromkeys(row.server_id for row in shown):
        placed = list(_stack(row for row in shown if row.server_id == server))
        height = (1 + max(each.lane for each in placed)) * _STEP + _PAD
        bands.append(_band(names.get(server) or server, placed, y, span))
        y += height
    total = f"{counted(len(shown), 'request')} to {counted(len(bands), 'server')} in {duration_text(now)}"
    # Widths are in percent, so that all of it is seen in a narrow window too; the style sheet places the two parts.
    lines = [band.line for band in bands]
    labels = tag(
        "svg",
        lines,
        [band.label for band in bands],
        class_="timeline",
        height=y + 6,
        aria_hidden="true",
        focusable="false",
    )
    bars = tag(
        "svg",
        lines,
        _axis(span, y),
        [band.bars for band in bands],
        class_="timeline",
        height=y + 6,
        role="img",
        aria_label=total,
    )
    legend = (("held", "answered"), ("wait", "in progress"), ("slow", "no longer needed"), ("damaged", "failed"))
    words = tag("p", total, class_="hint")
    keys = tag("ul", [tag("li", word, class_=kind) for kind, word in legend], class_="legend")
    return tag(
        "div",
        words,
        tag("div", labels, bars, class_="bands"),
        keys,
        class_="picture",
        role="region",
        aria_label="Timeline",
    )


def _stack(rows: Iterable[Row]) -> Iterable[_Placed]:
    """Place each row of a server on the first lane that is free when it begins."""
    ends: list[float] = []
    for row in rows:
        end = row.ended_s if row.ended_s is not None else float("inf")
        lane = next((index for index, free in enumerate(ends) if free <= row.began_s), len(ends))
        if lane >= _MAX_STACK:
            lane = min(range(_MAX_STACK), key=ends.__getitem__)
        if lane == len(ends):
            ends.append(end)
        else:
            ends[lane] = max(end, ends[lane])
        yield _Placed(row, lane)


def _band(name: str, placed: Sequence[_Placed], y: int, span: float) -> _Band:
    return _Band(
        line=tag("line", x1=0, x2="100%", y1=y, y2=y, class_="axis"),
        label=tag(
            "text", tag("title", name), name if len(name) <= 40 else f"{name[:39]}…", x=0, y=y + 14, class_="name"
        ),
        bars=tag("g", [_bar(each.row, y + 4 + each.lane * _STEP, span) for each in placed]),
    )


def _bar(row: Row, y: int, span: float) -> Markup:
    end = row.ended_s if row.ended_s is not None else span
    x = row.began_s / span * 100
    width = max((end - row.began_s) / span * 100, _LEAST_WIDTH)
    shares = f", shares {', '.join(map(str, row.share_numbers))}" if row.share_numbers else ""
    data = f", {size_text(row.count)}" if row.count else ""
    took = "" if row.ended_s is None else f" in {duration_text(row.ended_s - row.began_s)}"
    reason = f": {row.detail}" if row.detail else ""
    words = f"{row.what}{shares}{data}, {_WORDS.get(row.outcome, row.outcome)}{took}{reason}"
    kind = _CLASSES.get(row.outcome, "run")
    return tag("rect", tag("title", words), x=f"{x:.2f}%", y=y, width=f"{width:.2f}%", height=_BAR, rx=2, class_=kind)


def _axis(span: float, height: int) -> Markup:
    marks = []
    for part in range(5):
        x, kind = f"{part * 25}%", "name quarter" if part % 2 else "name"
        marks.append(tag("line", x1=x, x2=x, y1=20, y2=height, class_="axis"))
        anchor = "start" if part == 0 else "end" if part == 4 else "middle"
        marks.append(
            tag("text", duration_text(span * part / 4) if part else "0", x=x, y=13, class_=kind, text_anchor=anchor)
        )
    return tag("g", marks)


EVENTS = "/status/events"
"""The address of the stream of changes."""

KINDS: dict[str, str] = {
    "upload": "Upload",
    "download": "Download",
    "mapupdate": "Locate shares",
    "publish": "Update",
    "retrieve": "Read",
}
STATES: dict[str, tuple[str, str]] = {
    "active": ("warn", "Running"),
    "done": ("good", "Done"),
    "failed": ("bad", "Failed"),
    "cancelled": ("warn", "Stopped"),
}


def subject_text(operation: Operation, name: str = "") -> str:
    """Say what the operation concerns: its name, or else what it is."""
    if name:
        return f"{name}/" if operation.subject.is_directory and not name.endswith(":") else name
    if operation.subject.is_directory:
        return "a directory"
    return "a file" if operation.kind in ("upload", "download") else "an editable file"


def state_mark(operation: Operation) -> Markup:
    """The state of an operation, and why it failed."""
    kind, word = STATES[operation.outcome]
    detail = tag("small", operation.status) if operation.outcome == "failed" else None
    return join(tag("span", word, class_=f"state {kind}"), detail)


def progress_bar(operation: Operation) -> Markup:
    """How far it is, as a bar and, for a running upload, in words."""
    part, words = _part(operation), _part_words(operation)
    bar = tag(
        "progress", max=1, value=round(part, 4), aria_label=f"{KINDS[operation.kind]} {operation.number}: {part:.0%}"
    )
    return join(bar, tag("small", words) if words else None)


def _part(operation: Operation) -> float:
    """The finished fraction. An upload's two phases, receiving the file and storing it, count half each."""
    if not operation.progress.received or not operation.size:
        return operation.progress.fraction
    return (
        1.0
        if operation.outcome == "done"
        else (min(1.0, operation.progress.received / operation.size) + operation.progress.fraction) / 2
    )


def _part_words(operation: Operation) -> str:
    """The current phase of a running upload."""
    if not operation.is_active or not operation.progress.received:
        return ""
    if not operation.progress.count and operation.progress.received != operation.size:
        return f"Receiving: {size_text(operation.progress.received)} of {size_text(operation.size)}"
    return f"Storing: {size_text(operation.progress.count)} of {size_text(operation.size)}"


def seconds_of(operation: Operation, now: float | None = None) -> float | None:
    """Its duration so far, in seconds."""
    ended_at = operation.times.ended_at if operation.times.ended_at is not None else now
    return None if ended_at is None else max(0.0, ended_at - operation.times.began_at)


def render_operation(operation: Operation, names: Mapping[str, str], name: str = "") -> str:
    """Render one operation with its timeline. names: nicknames of servers by their ids. name: of what it concerns."""
    title = f"{KINDS[operation.kind]} {operation.number}"
    seconds = seconds_of(operation)
    rate = f", {size_text(int(operation.progress.count / seconds))}/s" if seconds and operation.progress.count else ""
    about = tag("bdi", subject_text(operation, name))
    pairs: list[tuple[str, object]] = [("Object", about), ("State", state_mark(operation))]
    if operation.is_active:
        pairs.append(("Now", operation.phase or operation.status))
    pairs += [
        ("Transferred", f"{size_text(operation.progress.count)} of {size_text(operation.size)}{rate}"),
        ("Started", time_text(operation.times.started_at)),
        ("Duration", duration_text(seconds)),
    ]
    if operation.storage_index:
        pairs.append(("Storage index", tag("code", operation.storage_index)))
    dropped = operation.timeline.dropped
    more = (
        notice("warn", tag("p", f"Only the first requests are shown; {dropped} more are left out."))
        if dropped
        else None
    )
    live = tag(
        "div",
        card(None, progress_bar(operation) if operation.is_active else None, facts(*pairs)),
        card("Requests to servers", more, draw_timeline(operation.timeline.rows, names), id="requests"),
        id="operation",
        data_live=EVENTS if operation.is_active else None,
    )
    back = tag("p", tag("a", "All operations", href="/status", class_="button quiet"))
    return document(title, tag("h1", title), live, back, here="/status")
