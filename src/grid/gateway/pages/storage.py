"""The storage server of this node: its disk, its shares and its requests. Pure. [spec webapi 9.4]"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grid.gateway.pages.markup import Markup, duration_text, size_text, tag
from grid.gateway.pages.shell import document, facts, nothing_here

_PERCENTILES = ("mean", "50_0_percentile", "90_0_percentile", "99_0_percentile")

Numbers = Mapping[str, int | float | None]

_PREFIX = "storage_server."

_OPERATIONS = {
    "get": "Find shares",
    "read": "Read a share",
    "allocate": "Allocate shares",
    "write": "Write to a share",
    "close": "Finish a share",
    "abort": "Abort a share",
    "readv": "Read a mutable share",
    "writev": "Change a mutable share",
    "add-lease": "Add or renew a lease",
}


def render_no_storage() -> str:
    """The page of a node without a storage server."""
    return document(
        "Storage server",
        tag("h1", "Storage server"),
        nothing_here("No storage server runs in this node.", "It only stores files on other servers.", "server"),
    )


def render_storage(
    nickname: str,
    counters: Numbers,
    stats: Numbers,
    crawlers: Mapping[str, Any],
    counting: Mapping[str, Any],
    expiry: str,
) -> str:
    """counters, stats: by the names that monitors know. crawlers: as in `t=json`.

    counting: the progress of counting storage indexes. expiry: when leases expire, in words.
    """

    def stat(name: str) -> int | None:
        value = stats.get(_PREFIX + name)
        return None if value is None else int(value)

    accepting = "Yes" if stat("accepting_immutable_shares") else "No"
    buckets = stat("total_bucket_count")
    return document(
        "Storage server",
        tag("h1", "Storage server"),
        tag("p", "What ", tag("bdi", nickname or "this node"), " stores for others.", class_="lead"),
        facts(
            ("Accepting new shares", accepting),
            ("Files and directories with shares here", "Not computed yet" if buckets is None else buckets),
            ("Reserved for uploads in progress", size_text(stat("allocated"))),
        ),
        tag("h2", "Disk"),
        facts(
            ("Total disk space", size_text(stat("disk_total"))),
            ("Disk space used", size_text(stat("disk_used"))),
            ("Free, including space reserved for root", size_text(stat("disk_free_for_root"))),
            ("Free for this node", size_text(stat("disk_free_for_nonroot"))),
            ("Reserved space", size_text(stat("reserved_space"))),
            ("Available for shares", size_text(stat("disk_avail"))),
        ),
        tag("h2", "Leases"),
        tag("p", expiry),
        facts(
            ("Counting shares", _progress(counting)),
            ("Checking leases", _progress(crawlers["lease-checker-progress"])),
            ("Corrupt shares found", _corrupt(crawlers["lease-checker"])),
        ),
        tag("h2", "Requests"),
        _requests(counters, stats),
        tag("p", "For programs: ", tag("a", "JSON", href="/storage?t=json"), "."),
    )


def _progress(progress: Mapping[str, Any]) -> str:
    if not progress["cycle-in-progress"]:
        wait_s = progress["remaining-wait-time"]
        return f"Next in {duration_text(wait_s)}" if wait_s >= 1 else "Begins now"
    left = progress["estimated-cycle-complete-time-left"]
    rest = "" if left is None else f", {duration_text(left)} left"
    return f"{progress['cycle-complete-percentage']:.0f}% done{rest}"


def _corrupt(state: Mapping[str, Any]) -> str:
    history: Mapping[str, Any] = state["history"]
    if not history:
        return "Not computed yet"
    return str(len(history[max(history, key=int)]["corrupt-shares"]))


def _requests(counters: Numbers, stats: Numbers) -> Markup:
    names = [name for name in _OPERATIONS if counters.get(_PREFIX + name)]
    if not names:
        return nothing_here("No requests yet", "Requests are counted since the node started.", "server")
    heads = ("Request", "Count", "Mean", "Median", "90th percentile", "99th percentile")
    head = tag("thead", tag("tr", [tag("th", title, scope="col") for title in heads]))
    rows = [
        tag(
            "tr",
            tag("th", _OPERATIONS[name], tag("small", tag("code", name)), scope="row"),
            tag("td", counters[_PREFIX + name], class_="number", data_label="Count"),
            [
                tag(
                    "td",
                    duration_text(stats.get(f"{_PREFIX}latencies.{name}.{part}")),
                    class_="number",
                    data_label=head,
                )
                for part, head in zip(_PERCENTILES, heads[2:], strict=True)
            ],
        )
        for name in names
    ]
    table = tag("table", tag("caption", "Requests", class_="unseen"), head, tag("tbody", rows), class_="cards")
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="Requests")
