"""What the gateway does and did, and one of its operations request by request. Pure. [spec webapi 9.2]

Both pages follow what happens: a part of each is fetched anew when the gateway announces a change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.gateway.history.operation import Operation
from grid.gateway.pages.figures import duration_text, size_text, time_text
from grid.gateway.pages.markup import Markup, join, tag
from grid.gateway.pages.shell import card, document, facts, nothing_here, notice
from grid.gateway.pages.timeline import draw_timeline

EVENTS = "/status/events"
"""Where changes are announced."""

_KINDS = {
    "upload": "Upload",
    "download": "Download",
    "mapupdate": "Locate shares",
    "publish": "Update",
    "retrieve": "Read",
}
_STATES = {
    "active": ("warn", "Running"),
    "done": ("good", "Done"),
    "failed": ("bad", "Failed"),
    "cancelled": ("warn", "Stopped"),
}


def render_operations(active: Sequence[Operation], recent: Sequence[Operation], now: float) -> str:
    """Operations under way and over, the newest first. now: Clock.now()."""
    running: Markup = (
        _table("In progress", active, now) if active else nothing_here("Nothing is in progress", _WAITING, "media")
    )
    over: Markup = (
        _table("Over", recent, now) if recent else tag("p", "Nothing was done since this gateway was started.")
    )
    live = tag("div", tag("h2", "In progress"), running, tag("h2", "Recent"), over, id="operations", data_live=EVENTS)
    lead = tag("p", "Live uploads, downloads and changes.", class_="lead")
    return document("Operations", tag("h1", "Operations"), lead, live, here="/status")


_WAITING = "As soon as something is stored or read, it is seen here."


def _table(caption: str, operations: Sequence[Operation], now: float) -> Markup:
    head = tag("thead", tag("tr", [tag("th", name, scope="col") for name in _COLUMNS]))
    body = tag("tbody", [_row(operation, now) for operation in operations])
    table = tag("table", tag("caption", caption, class_="unseen"), head, body, class_="cards")
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


_COLUMNS = ("What", "State", "Size", "Progress", "Duration", "Started")


def _row(operation: Operation, now: float) -> Markup:
    kind = _KINDS[operation.kind]
    name = tag("a", f"{kind} {operation.number}", href=f"/status/{operation.path}")
    index = tag("small", tag("code", operation.storage_index)) if operation.storage_index else None
    return tag(
        "tr",
        tag("th", name, index, scope="row"),
        tag("td", tag("div", _state(operation)), data_label="State"),
        tag("td", size_text(operation.size), class_="number", data_label="Size"),
        tag("td", tag("div", _progress(operation)), data_label="Progress"),
        tag("td", duration_text(_seconds(operation, now)), class_="number", data_label="Duration"),
        tag("td", time_text(operation.started_at), class_="number", data_label="Started"),
    )


def _state(operation: Operation) -> Markup:
    kind, word = _STATES[operation.outcome]
    detail = tag("small", operation.status) if operation.outcome == "failed" else None
    return join(tag("span", word, class_=f"state {kind}"), detail)


def _progress(operation: Operation) -> Markup:
    part, words = _part(operation), _part_words(operation)
    bar = tag(
        "progress", max=1, value=round(part, 4), aria_label=f"{_KINDS[operation.kind]} {operation.number}: {part:.0%}"
    )
    return join(bar, tag("small", words) if words else None)


def _part(operation: Operation) -> float:
    """How much of it is done: of an upload's two halves, taking the file and storing it, each counts as one."""
    if not operation.received or not operation.size:
        return operation.fraction
    return (
        1.0 if operation.outcome == "done" else (min(1.0, operation.received / operation.size) + operation.fraction) / 2
    )


def _part_words(operation: Operation) -> str:
    """What an upload under way does at the moment."""
    if not operation.is_active or not operation.received:
        return ""
    if not operation.count and operation.received != operation.size:
        return f"Receiving: {size_text(operation.received)} of {size_text(operation.size)}"
    return f"Storing: {size_text(operation.count)} of {size_text(operation.size)}"


def _seconds(operation: Operation, now: float | None = None) -> float | None:
    """How long it took, or has taken by now."""
    ended_at = operation.ended_at if operation.ended_at is not None else now
    return None if ended_at is None else max(0.0, ended_at - operation.began_at)


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
        ("Started", time_text(operation.started_at)),
        ("Duration", duration_text(seconds)),
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
