"""A running or finished operation over everything below a directory. Pure. [spec webapi 7]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.gateway.pages.links import object_path, with_arguments
from grid.gateway.pages.markup import Markup, tag
from grid.gateway.pages.shell import card, document, hidden, notice

_MAX_LISTED = 500
_TITLES = {
    "deep-check": "Check of everything below",
    "deep-stats": "Count of everything below",
    "deep-size": "Size of everything below",
    "manifest": "List of everything below",
}


def render_tree_operation(kind: str, found: Mapping[str, object], *, finished: bool, error: str | None) -> str:
    """found: the JSON document. error: why it ended early."""
    title = _TITLES.get(kind, kind)
    if error is not None:
        state = notice("bad", tag("p", error))
    elif finished:
        state = notice("good", tag("p", "Finished."))
    else:
        state = tag("p", "Running. This page updates as it runs.", class_="busy", role="status")
    cancel = tag("form", hidden(t="cancel"), tag("button", "Stop"), method="post", data_while_running=True,
                 enctype="multipart/form-data")  # fmt: skip
    parts = [state, _numbers(found), _unhealthy(found), _manifest(found)]
    live = tag("div", parts, id="operation", data_poll=not finished and error is None)
    return document(title, tag("h1", title), live, cancel if not finished and error is None else None, here="/status")


def _numbers(found: Mapping[str, object]) -> Markup | None:
    stats = found.get("stats", found.get("size"))
    every = {**(stats if isinstance(stats, Mapping) else {}), **found}
    rows = [
        tag("tr", tag("th", str(name).replace("-", " "), scope="row"), tag("td", value, class_="number"))
        for name, value in sorted(every.items())
        if isinstance(value, int) and not isinstance(value, bool)
    ]
    if not rows:
        return None
    head = tag("thead", tag("tr", tag("th", "What", scope="col"), tag("th", "Count", scope="col")))
    table = tag("table", tag("caption", "Totals", class_="unseen"), head, tag("tbody", rows))
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="Totals")


def _unhealthy(found: Mapping[str, object]) -> Markup | None:
    listed = _list(found.get("list-unhealthy-files"))[:_MAX_LISTED]
    if not listed:
        return None
    items = []
    for entry in map(_list, listed):
        path = "/".join(map(str, _list(entry[0]))) if entry else ""
        summary = entry[1].get("summary") if len(entry) > 1 and isinstance(entry[1], Mapping) else None
        items.append(tag("li", tag("bdi", path or "(the directory itself)"), ": ", str(summary or "not healthy")))
    return card("Not healthy", tag("ul", items))


def _manifest(found: Mapping[str, object]) -> Markup | None:
    listed = _list(found.get("manifest"))[:_MAX_LISTED]
    items = []
    for entry in map(_list, listed):
        if len(entry) > 1 and isinstance(entry[1], str):
            path = "/".join(map(str, _list(entry[0]))) or "(the directory itself)"
            items.append(tag("li", tag("a", tag("bdi", path), href=with_arguments(object_path(entry[1]), t="info"))))
    return card("Everything", tag("ul", items)) if items else None


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()
