"""Numbers of the gateway since it was started. Pure. [spec webapi 9.3]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.gateway.history.sample import Sample
from grid.gateway.pages.markup import Markup, duration_text, size_text, tag
from grid.gateway.pages.plots import Span, draw_plots
from grid.gateway.pages.shell import document, nothing_here
from grid.gateway.shared.node_view import DoorView
from grid.plural import counted

_TILES = (
    ("uploader.files_uploaded", "files stored", False),
    ("uploader.bytes_uploaded", "stored", True),
    ("downloader.files_downloaded", "files read", False),
    ("downloader.bytes_downloaded", "read", True),
    ("mutable.files_published", "changes written", False),
    ("mutable.files_retrieved", "editable files read", False),
)

MOST_USERS = 100
"""Users of a door that the page lists."""

Numbers = Mapping[str, int | float | None]


def render_statistics(
    counters: Numbers,
    stats: Numbers,
    doors: Sequence[DoorView] = (),
    samples: Sequence[Sample] = (),
    span: Span = "hour",
) -> str:
    """counters: numbers that only grow. stats: current numbers. Both by the names that monitors know.

    samples: for the plots, the last of now; none without samples. span: what the plots cover.
    """
    tiles = [_tile(_shown(counters.get(name) or 0, size), words) for name, words, size in _TILES]
    uptime = stats.get("node.uptime")
    started = "" if uptime is None else f" {duration_text(uptime)} ago"
    links = tag(
        "p",
        "For programs: ",
        tag("a", "JSON", href="/statistics?t=json"),
        ", ",
        tag("a", "OpenMetrics", href="/statistics?t=openmetrics"),
        ", ",
        tag("a", "Prometheus", href="/metrics"),
        ".",
    )
    return document(
        "Statistics",
        tag("h1", "Statistics"),
        tag("p", f"What this gateway has done since it started{started}.", class_="lead"),
        tag("div", tiles, class_="tiles"),
        tag("section", tag("h2", "Over time"), draw_plots(samples, span)) if samples else None,
        [_door(door) for door in doors] or None,
        _table("Counters", counters) if counters else nothing_here("Nothing counted yet", "Store or read a file."),
        _table("State", stats) if stats else None,
        links,
        here="/statistics",
    )


def _door(door: DoorView) -> Markup:
    """A door's address and its users."""
    users = door.users()
    rows = [
        tag("tr", tag("th", tag("bdi", user.name), scope="row"), tag("td", user.opens)) for user in users[:MOST_USERS]
    ]
    head = tag("thead", tag("tr", tag("th", "Who may use it", scope="col"), tag("th", "What it opens", scope="col")))
    title = door.name
    table = tag("table", tag("caption", f"Users of {title}", class_="unseen"), head, tag("tbody", rows))
    more = tag("p", f"and {len(users) - MOST_USERS} more") if len(users) > MOST_USERS else None
    active = counted(door.active(), "request")
    return tag(
        "section",
        tag("h2", title),
        tag("p", "Open at ", tag("code", door.address), f", {active} in progress."),
        tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=f"Users of {title}")
        if rows
        else None,
        more,
    )


def _tile(value: str, words: str) -> Markup:
    return tag("div", tag("p", value, class_="value"), tag("p", words, class_="what"), class_="card tile")


def _shown(value: int | float, is_size: bool) -> str:
    return size_text(int(value)) if is_size else f"{value:g}" if isinstance(value, float) else str(value)


def _number(value: int | float) -> str:
    """Whole numbers in full, others to the thousandth."""
    return f"{value:.{0 if float(value).is_integer() else 3}f}"


def _table(title: str, numbers: Numbers) -> Markup:
    head = tag("thead", tag("tr", tag("th", "Name", scope="col"), tag("th", "Value", scope="col")))
    rows = [
        tag(
            "tr",
            tag("th", tag("code", name), scope="row"),
            tag("td", "–" if value is None else _number(value), class_="number"),
        )
        for name, value in sorted(numbers.items())
    ]
    table = tag("table", tag("caption", title, class_="unseen"), head, tag("tbody", rows))
    return tag(
        "section", tag("h2", title), tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=title)
    )
