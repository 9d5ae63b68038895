"""Several entries of a directory at once: the bar of actions, the question before they are moved or removed, and the
folder picker. Pure.

Checkboxes and buttons belong to one form, so all of it works without scripts. [spec webapi 10]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grid.caps import DirectoryCap, UnknownChild
from grid.directory.pack import Child
from grid.gateway.pages.entries import natural_key
from grid.gateway.pages.forms import post_form
from grid.gateway.pages.links import can_be_walked
from grid.gateway.pages.markup import Markup, icon, join, tag
from grid.gateway.pages.shell import button, document, hidden, notice
from grid.plural import counted
from grid.values import field, frozen

MAX_LISTED = 20
"""Names listed in the question before entries are removed."""

MAX_PLACES = 1000
"""Directories that the picker offers in one place."""

FORM = "selection"
"""The form that the checkboxes of all entries belong to."""


def pick_all() -> Markup:
    """A checkbox for all entries shown, which needs scripts."""
    box = tag("input", type="checkbox", data_pick_all=True, aria_label="Select all entries shown")
    return tag("label", box, class_="pick", hidden=True)


def selection_bar(path: str, archive: str, *, is_writable: bool) -> Markup:
    """The actions on all selected entries. path: the directory's address. archive: of all its entries.

    Without changes, the address says what is asked for, and the form holds names only: so a read-only gateway knows that
    it changes nothing.
    """
    actions = [("zip", "download", "Download", "")]
    if is_writable:
        actions += [("move-many", "folder", "Move", ""), ("unlink-many", "trash", "Delete", "")]
    buttons = [
        tag("button", icon(picture), tag("span", label), name="t", value=t, class_=kind or None)
        for t, picture, label, kind in actions
    ]
    clear = tag("button", "Clear", type="button", data_clear=True, hidden=True, class_="quiet")
    return tag(
        "form",
        hidden(when_done=path),
        tag("span", "Selected entries", data_count=True),
        tag("div", buttons, clear, class_="buttons"),
        id=FORM,
        class_="selection",
        action=path if is_writable else archive,
        method="post",
        enctype="multipart/form-data" if is_writable else None,
        data_ask="Changed",
        data_early=True,
        aria_label="Selected entries",
    )


def render_removal(names: Sequence[str], action: str, back: str) -> str:
    """Ask before several entries are removed. action: the directory's address. back: where to return to."""
    words = counted(len(names), "entry", "entries")
    rest = len(names) - MAX_LISTED
    listed = [tag("li", tag("bdi", name or "(no name)")) for name in names[:MAX_LISTED]]
    more = tag("li", f"and {counted(rest, 'other')}") if rest > 0 else None
    form = post_form(
        action, _names(names), button("Delete", "danger"), done=f"Deleted {words}", t="unlink-many", sure="true",
        when_done=back,
    )  # fmt: skip
    return document(
        f"Delete {words}?",
        tag("h1", f"Delete {words}?", data_question=True),
        tag("ul", listed, more),
        tag("p", "You can put them back from the directory's page: the gateway remembers its last 100 changes."),
        form,
        _cancel(back),
    )


@frozen(kw_only=True)
class Picker:
    """A place that the folder picker shows. names: of the entries to move, out of the directory at `action`.

    back: where to return to. root, path: the place, as in an address. children: what is there. is_source: whether the
    entries are there now. is_writable: whether they can go there. problem: why they did not.
    """

    names: Sequence[str]
    action: str = field(repr=False)
    back: str = field(repr=False)
    root: str = field(repr=False)
    path: Sequence[str]
    children: Mapping[str, Child] = field(repr=False)
    is_source: bool
    is_writable: bool
    problem: str | None = None

    def at(self, *below: str) -> str:
        """The place of these names, as `at=` and `to_dir=` have it."""
        return "/".join((self.root, *self.path, *below))


def render_picker(picker: Picker) -> str:
    """Let a person choose the directory to move entries to."""
    words = counted(len(picker.names), "entry", "entries")
    problem = notice("bad", tag("p", picker.problem)) if picker.problem is not None else None
    here = tag("button", "Move here", name="to_dir", value=picker.at(), class_="primary", disabled=picker.is_source)
    if not picker.is_writable:
        here = tag("p", "This directory is read-only: you cannot move anything here.", class_="hint")
    elsewhere = tag(
        "div",
        tag("label", "Or the capability of another directory", for_="picked-cap"),
        tag("input", type="text", name="other", id="picked-cap", autocomplete="off", spellcheck="false"),
        tag("button", "Open", name="at", value=""),
        class_="field",
    )
    form = post_form(
        picker.action,
        _names(picker.names),
        tag("nav", tag("ol", _way(picker)), class_="crumbs", aria_label="Destination"),
        _places(picker),
        tag("div", here, class_="buttons"),
        elsewhere,
        done=f"Moved {words}",
        t="move-many",
        when_done=picker.back,
    )
    return document(
        f"Move {words}", tag("h1", f"Move {words}", data_question=True), problem, form, _cancel(picker.back)
    )


def _way(picker: Picker) -> Iterable[Markup]:
    for depth, label in enumerate(("Top", *picker.path)):
        at = "/".join((picker.root, *picker.path[:depth]))
        current = "location" if depth == len(picker.path) else None
        here = tag("button", tag("bdi", label), name="at", value=at, class_="quiet", aria_current=current)
        yield tag("li", here)


def _places(picker: Picker) -> Markup:
    taken = set(picker.names) if picker.is_source else set()
    found: list[tuple[str, DirectoryCap]] = []
    for name, child in picker.children.items():
        target = child.target
        if isinstance(target, UnknownChild) or not isinstance(target, DirectoryCap) or name in taken:
            continue
        if target.authority == "write":
            found.append((name, target))
    if not found:
        return tag("p", "There is no other directory here.", class_="hint")
    found.sort(key=lambda item: natural_key(item[0]))
    rows = [tag("li", _place(picker, name, target)) for name, target in found[:MAX_PLACES]]
    return tag("ul", rows, class_="places")


def _place(picker: Picker, name: str, target: DirectoryCap) -> Markup:
    # A name that no path can have is left out of the way, which then begins at the directory itself.
    at = picker.at(name) if can_be_walked([name]) and "/" not in name else target.to_string()
    return tag("button", icon("folder"), tag("bdi", name), name="at", value=at, class_="quiet")


def _names(names: Sequence[str]) -> Markup:
    return join(*(tag("input", type="hidden", name="name", value=name) for name in names))


def _cancel(back: str) -> Markup:
    return tag("p", tag("a", "Cancel", href=back, class_="button quiet", data_close=True))
