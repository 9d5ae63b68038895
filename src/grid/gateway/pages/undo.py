"""The part of a directory's page that offers to undo recent changes. Pure. [spec webapi 10]

It names changes by their numbers and holds no capability.
"""

from __future__ import annotations

from collections.abc import Sequence

from grid.gateway.history.undo_journal import PastChange
from grid.gateway.pages.entries import describe
from grid.gateway.pages.forms import post_form
from grid.gateway.pages.markup import Markup, icon, join, tag, time_mark
from grid.plural import counted

MAX_SHOWN = 20
"""Changes listed on a page, the newest first."""

MAX_NAMES = 3
"""Names shown of one change."""

LONGEST_NAME = 200
"""Characters shown of a name."""


def undo_part(path: str, changes: Sequence[PastChange]) -> Markup:
    """The list of changes, empty and hidden if there are none. path: the directory's address."""
    if not changes:
        return tag("div", id="undo", hidden=True)
    rows = [_row(path, change) for change in changes[:MAX_SHOWN]]
    words = f"Recently removed or replaced here: {len(changes)}"
    hint = tag(
        "p",
        "The gateway remembers the last 100 changes across all directories. Putting one back never replaces anything newer.",
    )
    details = tag("details", tag("summary", icon("undo"), words), hint, tag("ul", rows, class_="rows"))
    return tag("div", details, id="undo", class_="card")


def _row(path: str, change: PastChange) -> Markup:
    words = what_text(change)
    button = tag("button", "Put back", aria_label=f"Put back {words}")
    form = post_form(
        path,
        button,
        done=f"Put back {words}",
        t="undo",
        change=str(change.number),
        name=change.entries[0].name,
        when_done=path,
    )
    names = [tag("bdi", _short(entry.name)) for entry in change.entries[:MAX_NAMES]]
    parts = [part for name in names for part in (", ", name)][1:]
    more = len(change.entries) - len(names)
    others = f" and {counted(more, 'other')}" if more else ""
    verb = "Replaced" if all(entry.new is not None for entry in change.entries) else "Removed"
    kind = (" It was ", describe(change.entries[0].old), ".") if len(change.entries) == 1 else None
    about = tag("small", verb, " ", time_mark(change.time), ".", kind)
    return tag("li", tag("div", join(*parts, others), about), form)


def what_text(change: PastChange) -> str:
    """Name what a change removed or replaced, in a few words."""
    first, more = _short(change.entries[0].name), len(change.entries) - 1
    return f"{first} and {counted(more, 'other')}" if more else first


def _short(name: str) -> str:
    if not name:
        return "(no name)"
    return name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "…"
