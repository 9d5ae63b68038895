"""The page of running and recent operations: filtered, sorted, and with what each concerns. Pure. [spec webapi 9.2]

Reads of directories are left out at first: every page and every path makes some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from attrs import evolve

from grid.gateway.history.operation import Operation
from grid.gateway.pages.links import with_arguments
from grid.gateway.pages.markup import Markup, duration_text, join, size_text, tag, time_text
from grid.gateway.pages.operations import EVENTS, KINDS, STATES, progress_bar, seconds_of, state_mark, subject_text
from grid.gateway.pages.shell import document, hidden, nothing_here
from grid.plural import counted
from grid.values import frozen

Column = Literal["what", "state", "size", "duration", "started"]

COLUMNS: tuple[Column, ...] = ("what", "state", "size", "duration", "started")

NameOf = Callable[[Operation], str]
"""The name of what an operation concerns; "" if it is unknown or must not be shown."""


@frozen(kw_only=True)
class Choice:
    """What the page lists. kind, state: "" for all. everything: also reads of directories. by: the column to sort by."""

    kind: str = ""
    state: str = ""
    everything: bool = False
    by: Column = "started"
    descending: bool = True

    def includes(self, operation: Operation) -> bool:
        """Whether to list the operation."""
        if operation.is_directory_read and not (self.everything or self.kind == operation.kind == "mapupdate"):
            return False
        return self.kind in ("", operation.kind) and self.state in ("", operation.outcome)

    def address(self) -> str:
        """The page's address."""
        found = {"kind": self.kind, "state": self.state, "all": "true" if self.everything else ""}
        if (self.by, self.descending) != ("started", True):
            found |= {"by": self.by, "order": "desc" if self.descending else "asc"}
        return with_arguments("/status", **{name: value for name, value in found.items() if value})


def parse_choice(get: Callable[[str], str | None]) -> Choice:
    """Parse the arguments of the page; those with other values count as missing. get: an argument by name."""
    by = next((column for column in COLUMNS if column == get("by")), None)
    return Choice(
        kind=next((kind for kind in KINDS if kind == get("kind")), ""),
        state=next((state for state in STATES if state == get("state")), ""),
        everything=get("all") in ("true", "on", "1", "t"),
        by=by or "started",
        descending=get("order") == "desc" if by is not None else True,
    )


def render_operations(
    active: Sequence[Operation],
    recent: Sequence[Operation],
    now: float,
    choice: Choice | None = None,
    name_of: NameOf | None = None,
) -> str:
    """Render running and ended operations. now: Clock.now(). name_of: None if no names are shown."""
    choice = choice or Choice()
    names = name_of or (lambda operation: "")
    running, over = ([each for each in part if choice.includes(each)] for part in (active, recent))
    shown = len(running) + len(over)
    live = tag(
        "div",
        tag("h2", "In progress"),
        _table("In progress", running, now, choice, names)
        if running
        else nothing_here("Nothing is in progress", "Uploads, downloads and changes appear here.", "media"),
        tag("h2", "Recent"),
        _table("Recent", over, now, choice, names) if over else tag("p", _none_text(len(active) + len(recent))),
        _hidden_hint(len(active) + len(recent) - shown, choice),
        id="operations",
        data_live=EVENTS,
    )
    hint = None
    if name_of is None:
        words = ("To see names here, run ", tag("code", "grid web"), " on the gateway's machine.")
        hint = tag("p", words, class_="hint")
    lead = tag("p", "Live uploads, downloads and changes.", class_="lead")
    return document("Operations", tag("h1", "Operations"), lead, _filter(choice), live, hint, here="/status")


def _none_text(count: int) -> str:
    return "No operations match." if count else "Nothing has happened since this gateway started."


def _hidden_hint(count: int, choice: Choice) -> Markup | None:
    if not count:
        return None
    if choice.kind or choice.state:
        link = tag("a", "Show all kinds", href=evolve(choice, kind="", state="").address())
    else:
        link = tag("a", "Show", href=evolve(choice, everything=True).address())
    what = "operation" if choice.kind or choice.state else "directory read"
    hidden_text = counted(count, f"{what} is", f"{what}s are")
    return tag("p", f"{hidden_text} hidden. ", link, class_="hint")


def _filter(choice: Choice) -> Markup:
    box = tag("input", type="checkbox", name="all", value="true", id="all", checked=choice.everything)
    order = hidden(by=choice.by, order="desc" if choice.descending else "asc")
    return tag(
        "form",
        order if choice.address() != evolve(choice, by="started", descending=True).address() else None,
        _select("kind", "Kind", {"": "All kinds"} | KINDS, choice.kind),
        _select("state", "State", {"": "Any state"} | {name: word for name, (_, word) in STATES.items()}, choice.state),
        tag("div", box, tag("label", "Include directory reads", for_="all"), class_="check"),
        tag("button", "Show"),
        class_="filter choices",
        action="/status",
        method="get",
    )


def _select(name: str, label: str, words: dict[str, str], chosen: str) -> Markup:
    options = [tag("option", word, value=value, selected=value == chosen) for value, word in words.items()]
    return join(tag("label", label, for_=name), tag("select", options, name=name, id=name))


def _table(caption: str, operations: Sequence[Operation], now: float, choice: Choice, name_of: NameOf) -> Markup:
    heads = [_head(column, choice) for column in COLUMNS]
    head = tag("thead", tag("tr", heads[:3], tag("th", "Progress", scope="col"), heads[3:]))
    body = tag("tbody", [_row(operation, now, name_of) for operation in _sorted(operations, now, choice, name_of)])
    words = f"{caption}: {counted(len(operations), 'operation')}"
    table = tag("table", tag("caption", words, class_="unseen"), head, body, class_="cards")
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _head(column: Column, choice: Choice) -> Markup:
    is_sorted = choice.by == column
    address = evolve(choice, by=column, descending=is_sorted and not choice.descending).address()
    state = ("descending" if choice.descending else "ascending") if is_sorted else None
    mark = tag("span", "↓" if choice.descending else "↑", aria_hidden="true") if is_sorted else None
    return tag("th", tag("a", column.capitalize(), mark, href=address), scope="col", aria_sort=state)


def _sorted(operations: Sequence[Operation], now: float, choice: Choice, name_of: NameOf) -> list[Operation]:
    """Sort by the column; what has no value there comes last, and the newest first among equals."""

    def value(operation: Operation) -> str | float | None:
        match choice.by:
            case "what":
                return f"{subject_text(operation, name_of(operation)).casefold()}\0{KINDS[operation.kind]}"
            case "state":
                return STATES[operation.outcome][1]
            case "size":
                return operation.size
            case "duration":
                return seconds_of(operation, now)
            case "started":
                return operation.times.began_at

    ordered = sorted(operations, key=lambda operation: operation.times.began_at, reverse=True)
    known = [(found, operation) for operation in ordered if (found := value(operation)) is not None]
    known.sort(key=lambda item: item[0], reverse=choice.descending)
    return [operation for _, operation in known] + [each for each in ordered if value(each) is None]


def _row(operation: Operation, now: float, name_of: NameOf) -> Markup:
    link = tag("a", f"{KINDS[operation.kind]} {operation.number}", href=f"/status/{operation.path}")
    about = tag("bdi", subject_text(operation, name_of(operation)))
    index = tag("small", tag("code", operation.storage_index)) if operation.storage_index else None
    return tag(
        "tr",
        tag("th", link, " ", about, index, scope="row"),
        tag("td", tag("div", state_mark(operation)), data_label="State"),
        tag("td", size_text(operation.size), class_="number", data_label="Size"),
        tag("td", tag("div", progress_bar(operation)), data_label="Progress"),
        tag("td", duration_text(seconds_of(operation, now)), class_="number", data_label="Duration"),
        tag("td", time_text(operation.times.started_at), class_="number", data_label="Started"),
    )
