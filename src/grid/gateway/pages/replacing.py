"""The question before an entry is replaced, and the page after one was replaced or removed. Pure.

A replaced or removed object is not lost while its capability is known: the page shows it and offers to link it again.
"""

from __future__ import annotations

from collections.abc import Callable

from grid.caps import DirectoryCap, UnknownChild
from grid.directory.pack import Child
from grid.gateway.pages.entries import describe, info_path, is_directory, target_text
from grid.gateway.pages.forms import post_form, text_field
from grid.gateway.pages.markup import Markup, tag
from grid.gateway.pages.shell import button, document, notice
from grid.values import field, frozen


@frozen(kw_only=True)
class Conflict:
    """An entry that is in the way. fields: of the request, to be sent to `action` again.

    back: the address to return to.

    name_field: the field that names the new entry. free_name: a name that keeps both entries.
    """

    name: str
    there: Child = field(repr=False)
    action: str = field(repr=False)
    back: str = field(repr=False)
    fields: dict[str, str] = field(repr=False)
    name_field: str
    free_name: str


@frozen(kw_only=True)
class Gone:
    """An entry that was replaced or removed. name: under which to link it again. directory: the path of its directory.

    replaces: whether linking it again replaces the entry that took its place.
    """

    name: str
    child: Child = field(repr=False)
    directory: str = field(repr=False)
    replaces: bool = False


def free_name(name: str, is_taken: Callable[[str], bool]) -> str:
    """Insert, before the extension, the first number that makes the name free."""
    stem, dot, ending = name.rpartition(".")
    if not stem:
        stem, dot, ending = name, "", ""
    number = 2
    while is_taken(f"{stem} ({number}){dot}{ending}"):
        number += 1
    return f"{stem} ({number}){dot}{ending}"


def render_conflict(conflict: Conflict) -> str:
    """Ask whether to replace, keep both, or cancel."""
    name = tag("bdi", conflict.name)
    fields = {**conflict.fields, "ask": "true", "when_done": conflict.back}
    both = {key: value for key, value in fields.items() if key != conflict.name_field}
    replace = post_form(
        conflict.action, button("Replace", "danger"), done=f"Replaced {conflict.name}", **fields, replace="true"
    )
    keep = post_form(
        conflict.action,
        text_field("Name of the new file", conflict.name_field, "keep-as", conflict.free_name),
        button("Keep both", "primary"),
        done=f"Kept both, the new one as {conflict.free_name}",
        **both,
    )
    parts = [
        tag("h1", "Replace “", name, "”?"),
        notice(
            "warn", tag("p", "“", name, "” already exists: ", describe(conflict.there), ". Nothing has changed yet.")
        ),
        keep,
        tag("p", "A directory cannot be replaced: delete or rename it first.")
        if is_directory(conflict.there.target)
        else replace,
        _mutable_hint(conflict.name, conflict.there),
        tag("p", tag("a", "Skip: change nothing", href=conflict.back, class_="button quiet", data_close=True)),
    ]
    return document(f"Replace {conflict.name}?", *parts)


def _mutable_hint(name: str, there: Child) -> Markup | None:
    target = there.target
    if isinstance(target, UnknownChild | DirectoryCap) or not target.is_mutable or target.authority != "write":
        return None
    words = (
        "The existing file is editable. To change its contents and keep its capability, use “Replace the contents” on "
    )
    return tag("p", words, tag("a", "its page", href=info_path(target, name)), ".", class_="hint")


def render_gone(title: str, gone: Gone, back: str) -> str:
    """Say that an entry was replaced or removed: show its capability, and offer to link it again.

    back: the address to return to.
    """
    text = target_text(gone.child.target)
    undo = post_form(
        gone.directory,
        None if gone.replaces else text_field("Link it again as", "name", "undo-name", gone.name),
        button("Undo" if gone.replaces else "Link it again"),
        done=f"Linked {gone.name} again",
        t="uri",
        uri=text,
        ask="true",
        when_done=back,
        **({"name": gone.name, "replace": "true"} if gone.replaces else {}),
    )
    shown = tag(
        "div",
        tag("input", class_="cap", type="text", readonly=True, value=text, aria_label="Its capability"),
        tag("button", "Copy", type="button", data_copy=text, hidden=True, aria_label="Copy: its capability"),
        class_="copy",
    )
    rest = ". Its capability still opens it as long as servers keep its shares:"
    return document(
        title,
        tag("h1", title),
        notice("good", tag("p", "It was ", describe(gone.child), rest)),
        shown,
        tag("div", undo, class_="undo"),
        tag("p", tag("a", "Back to the directory", href=back, class_="button primary", data_close=True)),
    )
