"""What the gateway does and did, and one of its operations request by request. Pure. [spec webapi 9.2]

Both pages follow what happens: a part of each is fetched anew when the gateway announces a change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.gateway.operation import Operation
from grid.gateway.pages.figures import duration_text, size_text, time_text
from grid.gateway.pages.markup import Markup, join, tag
from grid.gateway.pages.shell import card, document, facts, nothing_here, notice
from grid.gateway.pages.timeline import draw_timeline

EVENTS = "/status/events"
"""Where changes are announced."""

_KINDS = {
    "upload": "Upload",
    "download": "Download",
    "mapupdate": "Look for shares",
    "publish": "Write",
    "retrieve": "Read",
}
_STATES = {
    "active": ("warn", "Running"),
    "done": ("good", "Done"),
    "failed": ("bad", "Failed"),
    "cancelled": ("warn", "Stopped"),
}


def render_operations(active: Sequence[Operation], recent: Sequence[Operation]) -> str:
    """Operations under way and over, the newest first."""
    running: Markup = _table("Under way", active) if active else nothing_here("Nothing is under way", _WAITING, "media")
    over: Markup = _table("Over", recent) if recent else tag("p", "Nothing was done since this gateway was started.")
    live = tag("div", tag("h2", "Under way"), running, tag("h2", "Recent"), over, id="operations", data_live=EVENTS)
    lead = tag("p", "Uploads, downloads, and reads and writes of what can be changed, as they happen.", class_="lead")
    return document("Operations", tag("h1", "Operations"), lead, live, here="/status")


_WAITING = "As soon as something is stored or read, it is seen here."


def _table(caption: str, operations: Sequence[Operation]) -> Markup:
    names = ("What", "State", "Size", "Progress", "Took", "Began")
    head = tag("thead", tag("tr", [tag("th", name, scope="col") for name in names]))
    table = tag("table", tag("caption", caption, class_="unseen"), head, tag("tbody", map(_row, operations)))
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _row(operation: Operation) -> Markup:
    kind = _KINDS[operation.kind]
    name = tag("a", f"{kind} {operation.number}", href=f"/status/{operation.path}")
    index = tag("small", tag("code", operation.storage_index)) if operation.storage_index else None
    return tag(
        "tr",
        tag("th", name, index, scope="row"),
        tag("td", _state(operation)),
        tag("td", size_text(operation.size), class_="number"),
        tag("td", _progress(operation)),
        tag("td", duration_text(_seconds(operation)), class_="number"),
        tag("td", time_text(operation.started_at), class_="number"),
    )


def _state(operation: Operation) -> Markup:
    kind, word = _STATES[operation.outcome]
    detail = tag("small", operation.status) if operation.outcome == "failed" else None
    return join(tag("span", word, class_=f"state {kind}"), detail)


def _progress(operation: Operation) -> Markup:
    return tag(
        "progress",
        max=1,
        value=round(operation.fraction, 4),
        aria_label=f"{_KINDS[operation.kind]} {operation.number}: {operation.fraction:.0%}",
    )


def _seconds(operation: Operation) -> float | None:
    return None if operation.ended_at is None else operation.ended_at - operation.began_at


def render_operation(operation: Operation, names: Mapping[str, str]) -> str:
    """One operation with its timeline. names: nicknames of servers by their ids."""
    title = f"{_KINDS[operation.kind]} {operation.number}"
    seconds = _seconds(operation)
    rate = f", {size_text(int(operation.count / seconds))}/s" if seconds and operation.count else ""
    pairs: list[tuple[str, object]] = [("State", _state(operation))]
    if operation.is_active:
        pairs.append(("Now", operation.phase or operation.status))
    pairs += [
        ("Moved", f"{size_text(operation.count)} of {size_text(operation.size)}{rate}"),
        ("Began", time_text(operation.started_at)),
        ("Took", duration_text(seconds)),
    ]
    if operation.storage_index:
        pairs.append(("Storage index", tag("code", operation.storage_index)))
    dropped = operation.timeline.dropped
    more = notice("warn", tag("p", f"The first requests are shown; {dropped} more are not.")) if dropped else None
    live = tag(
        "div",
        card(None, _progress(operation) if operation.is_active else None, facts(*pairs)),
        card("Requests to servers", more, draw_timeline(operation.timeline.rows, names), id="requests"),
        id="operation",
        data_live=EVENTS if operation.is_active else None,
    )
    back = tag("p", tag("a", "All operations", href="/status", class_="button quiet"))
    return document(title, tag("h1", title), live, back, here="/status")
