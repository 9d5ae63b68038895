"""The health of an object as a picture of which server holds which share, and in words. Pure. [spec webapi 6]

Reads the JSON shapes of check results, which programs get too, so that both are told the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.gateway.pages.markup import Markup, join, tag
from grid.gateway.pages.shell import card, facts, notice
from grid.gateway.serverview import ServerView

_CELL, _GAP, _NAMES = 26, 4, 130
_MAX_SERVERS, _MAX_SHARES = 100, 256

Json = Mapping[str, object]


def health_card(checked: Json, known: Sequence[ServerView], buttons: Markup | None = None) -> Markup:
    """Results of a check, or of a check and repair. known: all servers, those that gave no answer included."""
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
        return notice("good", tag("p", "Repaired: all shares are there again."))
    return notice("bad", tag("p", "The repair did not bring back all shares. See which servers are away."))


def _results(checked: Json, known: Sequence[ServerView]) -> Markup:
    results = _object(checked.get("results"))
    if "sharemap" not in results:
        return notice("good", tag("p", "Healthy: there are no shares that could be lost."))
    silent = _silent(results, known)
    needed, expected = _number(results, "count-shares-needed"), _number(results, "count-shares-expected")
    good = _number(results, "count-shares-good")
    healthy, recoverable = bool(results.get("healthy")), bool(results.get("recoverable"))
    kind = "good" if healthy else "warn" if recoverable else "bad"
    if healthy:
        words = f"Healthy: {good} of {expected} shares are there; any {needed} of them are enough."
    elif recoverable:
        words = f"Not healthy, and readable: {good} of {expected} shares are there; {needed} are needed. Repair makes the rest."
    else:
        words = f"Cannot be read now: {good} of {expected} shares are there, and {needed} are needed."
    return join(
        notice(kind, tag("p", tag("strong", words))),
        share_picture(results, known),
        _silent_list(silent),
        facts(
            ("Good shares", f"{good} of {expected}, {needed} needed"),
            ("Servers with good shares", str(_number(results, "count-good-share-hosts"))),
            ("Happiness", str(_number(results, "count-happiness"))),
            ("Damaged shares", str(_number(results, "count-corrupt-shares"))),
            ("Servers that answered", _answered(results, silent)),
        ),
    )


def _answered(results: Json, silent: Sequence[ServerView]) -> str:
    count = len(_list(results.get("servers-responding")))
    return f"{count} of {count + len(silent)}" if silent else str(count)


def _silent(results: Json, known: Sequence[ServerView]) -> list[ServerView]:
    """The servers that are known and said nothing, in the order of their names."""
    heard = {str(server) for server in _list(results.get("servers-responding"))}
    heard |= {server for server, _ in _holdings(results)}
    missing = [row for row in known if row.server_id not in heard]
    return sorted(missing, key=lambda row: (row.nickname, row.server_id))


def _silent_list(silent: Sequence[ServerView]) -> Markup | None:
    """Each server that gave no answer, with what is known of it."""
    if not silent:
        return None
    entries = []
    for row in silent[:_MAX_SERVERS]:
        state = "connected, and silent when asked" if row.is_connected else "not connected"
        detail = f": {row.status}" if row.status and not row.is_connected else ""
        name = tag("bdi", row.nickname or row.server_id)
        entries.append(tag("li", tag("strong", name), f" – {state}{detail}"))
    words = "No answer came from these servers; what they hold is not known and not counted."
    return tag("div", tag("p", words), tag("ul", entries), class_="silent-servers")


def share_picture(results: Json, known: Sequence[ServerView]) -> Markup:
    """An SVG: a row for every server, a column for every share; and the same as a table for those who do not see it."""
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
    rows: list[Markup | None] = [
        _server_row(index, name, names, labels, held, bad) for index, name in enumerate(servers)
    ]
    rows += [_silent_row(len(servers) + index, row, labels) for index, row in enumerate(silent)]
    drawn = len(rows)
    step = _CELL + _GAP
    lost = [label for label in labels if not any((server, label) in held for server in servers)]
    rows.append(_lost_row(drawn, labels, lost))
    width, height = _NAMES + step * len(labels), step * (drawn + bool(lost)) + 10
    words = f"{len(labels) - len(lost)} of {len(labels)} shares on {len(servers)} servers"
    if silent:
        words += f", {len(silent)} without an answer"
    svg = tag(
        "svg",
        *rows,
        class_="shares",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=words,
    )
    return tag(
        "div",
        svg,
        _legend(bool(silent)),
        class_="picture",
        tabindex="0",
        role="region",
        aria_label="Which server holds which share",
    )


def _server_row(
    index: int,
    server: str,
    names: Mapping[str, str],
    labels: Sequence[str],
    held: set[tuple[str, str]],
    bad: set[tuple[str, str]],
) -> Markup:
    step, y = _CELL + _GAP, index * (_CELL + _GAP) + 2
    shown = names.get(server) or server
    cells: list[Markup] = [_name(shown, y)]
    for column, label in enumerate(labels):
        x = _NAMES + column * step
        if (server, label) in bad:
            cells.append(_cell(x, y, "damaged", "×", f"share {label}: damaged on {shown}"))
        elif (server, label) in held:
            cells.append(_cell(x, y, "held", _short(label), f"share {label}: good on {shown}"))
        else:
            cells.append(tag("rect", x=x, y=y, width=_CELL, height=_CELL, rx=6, class_="none"))
    return tag("g", *cells)


def _silent_row(index: int, row: ServerView, labels: Sequence[str]) -> Markup:
    y, shown = index * (_CELL + _GAP) + 2, row.nickname or row.server_id
    why = "no answer" if row.is_connected else "not connected"
    cells = [_name(shown, y)]
    for column, label in enumerate(labels):
        x = _NAMES + column * (_CELL + _GAP)
        cells.append(_cell(x, y, "silent", "?", f"share {label}: not known of {shown}, {why}"))
    return tag("g", *cells)


def _name(shown: str, y: int) -> Markup:
    return tag("text", shown if len(shown) <= 17 else f"{shown[:16]}…", x=0, y=y + 18, class_="name")


def _lost_row(index: int, labels: Sequence[str], lost: Sequence[str]) -> Markup | None:
    if not lost:
        return None
    step, y = _CELL + _GAP, index * (_CELL + _GAP) + 8
    cells = [tag("text", "nowhere seen", x=0, y=y + 18, class_="name")]
    for column, label in enumerate(labels):
        if label in lost:
            cells.append(
                _cell(_NAMES + column * step, y, "lost", _short(label), f"share {label}: on no server that answered")
            )
    return tag("g", *cells)


def _cell(x: int, y: int, kind: str, label: str, words: str) -> Markup:
    box = tag("rect", x=x, y=y, width=_CELL, height=_CELL, rx=6)
    middle = tag("text", label, x=x + _CELL // 2, y=y + 17, text_anchor="middle")
    return tag("g", tag("title", words), box, middle, class_=kind)


def _legend(has_silent: bool) -> Markup:
    kinds = [("held", "good"), ("damaged", "damaged"), ("lost", "on no server that answered")]
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
