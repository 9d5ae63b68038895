"""A check, verification or repair of everything below a directory: how far it is, and what is unhealthy. Pure.

[spec webapi 7, 10]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal
from urllib.parse import quote

from grid.gateway.pages.forms import post_form
from grid.gateway.pages.links import can_be_walked
from grid.gateway.pages.markup import Markup, icon, size_text, tag
from grid.gateway.pages.shell import button, card, document, facts, hidden, notice
from grid.plural import counted
from grid.values import field, frozen

MAX_SHOWN = 500
"""Unhealthy objects listed on the page."""

LONGEST_PATH = 1000
"""Characters shown of a path."""

_LOST = " Bring the missing servers back, then check again."

State = Literal["running", "finished", "stopped", "failed"]
Json = Mapping[str, object]


@frozen(kw_only=True)
class UnhealthyObject:
    """An object that was found unhealthy. now: CHECK, after a repair if one was made."""

    path: Sequence[str]
    now: Json = field(repr=False)


@frozen(kw_only=True)
class TreeCheck:
    """A check. home: the address of the directory's page. problem: why it failed. counts: by 1.20's names.

    done: objects checked. found: those known so far. size: bytes of the files and directories checked.
    """

    home: str = field(repr=False)
    state: State
    problem: str = ""
    verify: bool = False
    repair: bool = False
    done: int = 0
    found: int = 0
    shares: int = 0
    size: int = 0
    counts: Mapping[str, int] = field(factory=dict)
    under_way: Sequence[Sequence[str]] = ()
    unhealthy: Sequence[UnhealthyObject] = field(factory=tuple, repr=False)

    @property
    def title(self) -> str:
        """What is done."""
        word = "Repair" if self.repair else "Verification" if self.verify else "Check"
        return f"{word} of everything below"

    def now(self, kind: str) -> int:
        """How many objects or shares are of this kind, after repairs."""
        return self.counts.get(f"count-{kind}-post-repair", 0)


def tree_card(path: str, *, is_writable: bool, last: tuple[str, bool] | None = None) -> Markup:
    """The card of a directory's page that starts a check of everything below it.

    last: the handle of the last one, and whether it has finished.
    """
    words = "Checks this directory and everything below it. The check continues even if you leave this page."
    again = None
    if last is not None:
        handle, has_finished = last
        label = "Results of the last check" if has_finished else "A check is running: show it"
        again = tag("p", tag("a", label, href=f"/operations/{quote(handle, safe='')}", class_="button"))
    form = check_tree_form(path, is_writable=is_writable)
    return card("Everything below", tag("p", words), again, form, id="tree")


def check_tree_form(path: str, *, is_writable: bool, verify: bool = False, repair: bool = False) -> Markup:
    """Starts a check of everything below a directory."""
    repairs = "Repair what is unhealthy"
    if not is_writable:
        repairs += ", except editable files and directories: these need the write capability"
    boxes = [
        _box("verify", "Verify: read and validate every share, which takes much longer", verify),
        _box("repair", repairs, repair),
    ]
    return post_form(
        path, boxes, button("Check everything below", "primary", "shield"), t="start-deep-check", ask="true"
    )


def _box(name: str, label: str, checked: bool) -> Markup:
    box = tag("input", type="checkbox", name=name, value="true", id=f"tree-{name}", checked=checked)
    return tag("div", box, tag("label", label, for_=f"tree-{name}"), class_="check")


def render_tree_check(view: TreeCheck) -> str:
    """Render the page of a check, which updates as it runs."""
    is_running = view.state == "running"
    live = tag(
        "div",
        _state(view),
        card(None, _numbers(view)),
        _under_way(view) if is_running else None,
        _unhealthy(view),
        id="operation",
        data_poll=is_running,
    )
    stop = tag("form", hidden(t="cancel", ask="true"), tag("button", "Stop"), method="post", data_while_running=True,
               enctype="multipart/form-data")  # fmt: skip
    back = tag("p", tag("a", icon("folder"), "Back to the directory", href=view.home, class_="button quiet"))
    return document(view.title, tag("h1", view.title), live, stop if is_running else None, back, here="/status")


def _state(view: TreeCheck) -> Markup:
    if view.state == "running":
        doing = "Repairing" if view.repair else "Verifying" if view.verify else "Checking"
        words = f"{doing}: {view.done} of about {counted(max(view.found, view.done), 'object')} done so far."
        most = max(view.found, view.done, 1)
        bar = tag("progress", value=view.done, max=most, aria_label=view.title)
        return tag("div", tag("p", words, class_="busy"), bar, class_="card")
    if view.state == "failed":
        return notice("bad", tag("p", tag("strong", "Ended early: "), view.problem))
    if view.state == "stopped":
        return notice("warn", tag("p", "Stopped. These are the results so far."))
    return _verdict(view)


def _verdict(view: TreeCheck) -> Markup:
    lost, ill = view.now("objects-unrecoverable"), view.now("objects-unhealthy")
    repaired = view.counts.get("count-repairs-successful", 0)
    repairs = f" {counted(repaired, 'object was', 'objects were')} repaired." if repaired else ""
    crowded = view.now("objects-crowded")
    if not ill and crowded:
        which = "1 of them is" if crowded == 1 else f"{crowded} of them are"
        hint = "" if view.repair else " A repair spreads the shares over other servers that have room."
        healthy = tag("strong", f"Everything is healthy: {counted(view.done, 'object')}.")
        words = tag("p", healthy, f" But {which} spread over too few servers.", repairs, hint)
        return notice("warn", words, _repair_form(view))
    if not ill:
        return notice(
            "good", tag("p", tag("strong", f"Everything is healthy: {counted(view.done, 'object')}."), repairs)
        )
    of = f"{ill} of {counted(view.done, 'object')} {'is' if ill == 1 else 'are'} not healthy"
    if lost:
        which = "" if lost == ill else f"{lost} of these "
        words = tag("p", tag("strong", f"{of}, and {which}cannot be read now."), repairs, _LOST)
        return notice("bad", words, None if lost == ill else _repair_form(view))
    hint = "" if view.repair else " A repair recreates the missing shares."
    words = tag("p", tag("strong", f"{of}, but all can be read."), repairs, hint)
    return notice("warn", words, _repair_form(view))


def _repair_form(view: TreeCheck) -> Markup | None:
    """The next step after a check: the same with a repair. After a repair there is none."""
    if view.repair:
        return None
    verify = {"verify": "true"} if view.verify else {}
    return post_form(
        view.home, button("Repair", "", "shield"), t="start-deep-check", ask="true", repair="true", **verify
    )


def _numbers(view: TreeCheck) -> Markup:
    pairs: list[tuple[str, object]] = [
        ("Objects checked", str(view.done)),
        ("Size of files and directories", size_text(view.size)),
        ("Good shares", str(view.shares)),
        ("Damaged shares", str(view.now("corrupt-shares"))),
        ("Not healthy", str(view.now("objects-unhealthy"))),
    ]
    if view.now("objects-crowded"):
        pairs.append(("On too few servers", str(view.now("objects-crowded"))))
    if view.repair:
        tried = view.counts.get("count-repairs-attempted", 0)
        pairs.append(("Repaired", f"{view.counts.get('count-repairs-successful', 0)} of {tried} tried"))
    return facts(*pairs)


def _under_way(view: TreeCheck) -> Markup | None:
    if not view.under_way:
        return None
    return card(
        "In progress", tag("ul", [tag("li", tag("bdi", _shown(path))) for path in view.under_way], class_="rows")
    )


def _unhealthy(view: TreeCheck) -> Markup | None:
    rows = [_row(view.home, each) for each in view.unhealthy[:MAX_SHOWN]]
    if not rows:
        return None
    total = view.counts.get("count-objects-unhealthy-pre-repair", 0)
    rest = total - len(rows)
    more = tag("p", f"And {counted(rest, 'other')}.", class_="hint") if rest > 0 else None
    return card("Unhealthy objects", tag("ul", rows, class_="rows"), more, id="unhealthy")


def _row(home: str, ill: UnhealthyObject) -> Markup:
    shown = tag("bdi", _shown(ill.path))
    if can_be_walked(ill.path):
        names = "/".join(quote(name, safe="") for name in ill.path)
        shown = tag("a", shown, href=f"{home}{names}?t=info")
    kind, words = _health(ill.now)
    if kind == "good":
        words = "Repaired"
    return tag("li", tag("div", shown), tag("span", words, class_=f"state {kind}"))


def _health(checked: Json) -> tuple[str, str]:
    """How healthy an object is: good, warn or bad, and words."""
    if "error" in checked:
        return "bad", str(checked.get("summary", checked["error"]))
    found = checked.get("results")
    results: Json = found if isinstance(found, Mapping) else {}
    if results.get("healthy"):
        return "good", "Healthy"
    numbers = [results.get(f"count-shares-{kind}") for kind in ("good", "expected", "needed")]
    words = "{} of {} shares, {} needed".format(*(number if isinstance(number, int) else "?" for number in numbers))
    return ("warn", words) if results.get("recoverable") else ("bad", f"Cannot be read: {words}")


def _shown(path: Sequence[str]) -> str:
    text = "/".join(path) or "(the directory itself)"
    return text if len(text) <= LONGEST_PATH else text[:LONGEST_PATH] + "…"
