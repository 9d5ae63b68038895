"""The results of a check, a verification or a repair. Pure. [spec webapi 6.1]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.gateway.pages.directory import check_form
from grid.gateway.pages.markup import Markup, join, tag
from grid.gateway.pages.shell import card, document, facts, notice
from grid.gateway.shared.node_view import ServerView
from grid.plural import counted


def render_check_results(
    checked: Mapping[str, object], known: Sequence[ServerView], path: str, return_to: str | None = None
) -> str:
    """checked: the JSON document. known: all servers. path: of the object. return_to: the address of the link back."""
    back = tag("p", tag("a", "Back", href=return_to or path, class_="button quiet"))
    return document("Health", tag("h1", "Health"), health_card(checked, known, check_form(path)), back)


_MAX_SERVERS, _MAX_SHARES = 100, 256

Json = Mapping[str, object]


def health_card(checked: Json, known: Sequence[ServerView], buttons: Markup | None = None) -> Markup:
    """Results of a check, or of a check and repair. known: all servers, including those that did not answer."""
    parts: list[object] = []
    if "post-repair-results" in checked:
        parts.append(_repair_notice(checked))
        before, after = _object(checked.get("pre-repair-results")), _object(checked.get("post-repair-results"))
        if checked.get("repair-attempted"):
            parts += [tag("h3", "Before"), _results(before, known), tag("h3", "Now")]
        checked = after
    parts += [_results(checked, known), buttons]
    return card("Health", *parts, id="health")


def _repair_notice(checked: Json) -> Markup:
    if not checked.get("repair-attempted"):
        return notice("good", tag("p", "There was nothing to repair."))
    if checked.get("repair-successful"):
        return notice("good", tag("p", "Repaired: all shares are good again."))
    return notice("bad", tag("p", "The repair did not recreate all shares. Check which servers are unreachable."))


def _good_of(good: int, expected: int) -> str:
    return f"{good} of {counted(expected, 'share is', 'shares are')} good"


def _needed(needed: int) -> str:
    return counted(needed, "is needed", "are needed")


def _results(checked: Json, known: Sequence[ServerView]) -> Markup:
    results = _object(checked.get("results"))
    if "sharemap" not in results:
        words = "Healthy: the capability itself contains the whole file, so there are no shares to lose."
        return notice("good", tag("p", words))
    silent = _silent(results, known)
    needed, expected = _number(results, "count-shares-needed"), _number(results, "count-shares-expected")
    good = _number(results, "count-shares-good")
    healthy, recoverable = bool(results.get("healthy")), bool(results.get("recoverable"))
    kind = "good" if healthy else "warn" if recoverable else "bad"
    if healthy:
        words = f"Healthy: {_good_of(good, expected)}; any {needed} of them {'is' if needed == 1 else 'are'} enough."
    elif recoverable:
        words = f"Not healthy, but readable: {_good_of(good, expected)}; {_needed(needed)}. Repair recreates the rest."
    else:
        words = f"Cannot be read now: {_good_of(good, expected)}, and {_needed(needed)}."
    return join(
        notice(kind, tag("p", tag("strong", words))),
        share_picture(results, known),
        _silent_list(silent),
        facts(
            ("Good shares", f"{good} of {expected}, {needed} needed"),
            ("Servers with good shares", str(_number(results, "count-good-share-hosts"))),
            ("Servers with a share of their own (happiness)", str(_number(results, "count-happiness"))),
            ("Damaged shares", str(_number(results, "count-corrupt-shares"))),
            ("Servers that answered", _answered(results, silent)),
        ),
    )


def _answered(results: Json, silent: Sequence[ServerView]) -> str:
    count = len(_list(results.get("servers-responding")))
    return f"{count} of {count + len(silent)}" if silent else str(count)


def _silent(results: Json, known: Sequence[ServerView]) -> list[ServerView]:
    """Servers that were asked or are known but did not answer, sorted by name."""
    heard = {str(server) for server in _list(results.get("servers-responding"))}
    heard |= {server for server, _ in _holdings(results)}
    missing = [row for row in known if row.server_id not in heard]
    listed = {row.server_id for row in known}
    missing.extend(
        ServerView(server_id=server, nickname="", is_connected=True, status="")
        for server in map(str, _list(results.get("servers-silent")))
        if server not in listed and server not in heard
    )
    return sorted(missing, key=lambda row: (row.nickname, row.server_id))


def _silent_list(silent: Sequence[ServerView]) -> Markup | None:
    """Each server that did not answer, with what is known about it."""
    if not silent:
        return None
    entries = []
    for row in silent[:_MAX_SERVERS]:
        state = "connected, but did not answer" if row.is_connected else "not connected"
        detail = f": {row.status}" if row.status and not row.is_connected else ""
        name = tag("bdi", row.nickname or row.server_id)
        entries.append(tag("li", tag("strong", name), f" – {state}{detail}"))
    words = "These servers did not answer. What they hold is unknown and not counted."
    return tag("div", tag("p", words), tag("ul", entries), class_="silent-servers")


def share_picture(results: Json, known: Sequence[ServerView]) -> Markup:
    """The share map: a row per server and a cell per share, with a text alternative. Rows wrap on narrow screens."""
    names = {row.server_id: row.nickname for row in known if row.nickname}
    held = _holdings(results)
    bad = {
        (str(entry[0]), str(entry[2]))
        for entry in map(_list, _list(results.get("list-corrupt-shares")))
        if len(entry) > 2
    }
    count = min(max(_number(results, "count-shares-expected"), 1), _MAX_SHARES)
    labels = sorted({label for _, label in held | bad}, key=_share_order)
    if all(label.isascii() and label.isdigit() for label in labels):
        labels = [str(number) for number in range(max(count, 1 + max(map(int, labels), default=0)))]
    labels = labels[:_MAX_SHARES]
    responding = {str(server) for server in _list(results.get("servers-responding"))}
    servers = sorted({server for server, _ in held | bad} | responding, key=lambda name: (names.get(name, ""), name))
    silent = [row for row in _silent(results, known) if row.server_id not in servers]
    servers = servers[:_MAX_SERVERS]
    silent = silent[: _MAX_SERVERS - len(servers)]
    lost = [label for label in labels if not any((server, label) in held for server in servers)]
    rows = [_server_row(server, names, labels, held, bad) for server in servers]
    rows += [_silent_row(row, labels) for row in silent]
    if lost:
        rows.append(_lost_row(labels, lost))
    words = f"{len(labels) - len(lost)} of {counted(len(labels), 'share')} on {counted(len(servers), 'server')}"
    if silent:
        words += f", {len(silent)} did not answer"
    return tag("div", tag("ul", rows, class_="shares", aria_label=words), _legend(bool(silent)), class_="picture")


def _server_row(
    server: str,
    names: Mapping[str, str],
    labels: Sequence[str],
    held: set[tuple[str, str]],
    bad: set[tuple[str, str]],
) -> Markup:
    shown = names.get(server) or server
    cells = []
    for label in labels:
        if (server, label) in bad:
            cells.append(_cell("damaged", "×", f"share {label}: damaged on {shown}"))
        elif (server, label) in held:
            cells.append(_cell("held", _short(label), f"share {label}: good on {shown}"))
        else:
            cells.append(tag("span", class_="cell none"))
    return _share_row(shown, cells)


def _silent_row(row: ServerView, labels: Sequence[str]) -> Markup:
    shown = row.nickname or row.server_id
    why = "no answer" if row.is_connected else "not connected"
    return _share_row(shown, [_cell("silent", "?", f"share {label}: unknown on {shown}, {why}") for label in labels])


def _lost_row(labels: Sequence[str], lost: Sequence[str]) -> Markup:
    """The shares that no answering server has, each below its column."""
    wanted = frozenset(lost)
    cells = [
        _cell("lost", _short(label), f"share {label}: missing") if label in wanted else tag("span", class_="cell")
        for label in labels
    ]
    return _share_row("missing", cells)


def _share_row(name: str, cells: Sequence[Markup]) -> Markup:
    return tag("li", tag("bdi", name, class_="name", title=name), tag("span", cells, class_="cells"))


def _cell(kind: str, label: str, words: str) -> Markup:
    shown = tag("span", label, aria_hidden="true")
    return tag("span", shown, tag("span", words, class_="unseen"), class_=f"cell {kind}", title=words)


def _legend(has_silent: bool) -> Markup:
    kinds = [("held", "good"), ("damaged", "damaged"), ("lost", "missing")]
    if has_silent:
        kinds.append(("silent", "no answer"))
    return tag("ul", [tag("li", word, class_=kind) for kind, word in kinds], class_="legend")


def _holdings(results: Json) -> set[tuple[str, str]]:
    sharemap = _object(results.get("sharemap"))
    return {(str(server), str(label)) for label, servers in sharemap.items() for server in _list(servers)}


def _share_order(label: str) -> tuple[str, int]:
    head, _, number = label.rpartition("sh")
    return head, int(number) if number.isascii() and number.isdigit() else 0


def _short(label: str) -> str:
    return label.rpartition("sh")[2][:4]


def _object(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _number(results: Json, key: str) -> int:
    value = results.get(key)
    return value if isinstance(value, int) else 0
