"""The rows of a directory's page, kept small because a page has 500 of them. Pure. [spec webapi 10]

The labels of a row's controls are made of words that the page has once and of the entry's name (`row_words`). A row
contains no capability, so a page of rows can be compressed; only an entry whose name no address can contain is linked
by its capability. (decision 348) No control but the checkbox belongs to a form: browsers take time proportional to the
square of the buttons in a form to parse it. (decision 365)
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from grid.caps import DirectoryCap, ImmutableFileCap, UnknownChild
from grid.directory.pack import Child
from grid.gateway.pages.entries import info_path, linked_at
from grid.gateway.pages.file_cards import kind_of
from grid.gateway.pages.links import can_be_walked, file_path, object_path
from grid.gateway.pages.markup import Markup, fill, icon, join, size_text, tag, time_text
from grid.gateway.pages.selection import FORM

LONGEST_SHOWN = 1000
"""Characters shown of a name. A longer one would not fit in an address, and cannot be selected or renamed."""

GROUP_ROWS = 20
"""Rows in a full group. Phones neither style nor lay out nor paint full groups out of sight. (decision 365)"""

_WORDS = {"s": "Select", "d": "Download", "i": "Details of", "e": "Rename, move or delete"}
_PICTURES = {"image": "image", "video": "media", "audio": "media"}

_ROW = tag(
    "tr",
    tag("th", "{cell}", scope="row", class_="{picture}"),
    tag("td", "{size}"),
    tag("td", "{time}"),
    tag("td", "{actions}"),
)
_IMAGE = ' class="image"'
_NAME = tag("bdi", "{short}", id="{label}")
_NAME_LINK = tag("a", _NAME, href="{address}")
_BOX = tag(
    "label",
    tag("input", type="checkbox", name="name", value="{name}", form=FORM, aria_labelledby="s {label}"),
    class_="pick",
)
_LINK = tag("a", class_="{kind}", href="{address}", aria_labelledby="{label}")
_EDIT_LINK = tag("a", class_="edit", href="{address}", aria_labelledby="e {label}", data_dialog=True)


def row_words() -> Markup:
    """The words of the labels of all rows."""
    return tag("p", [tag("span", word, id=name) for name, word in _WORDS.items()], hidden=True)


def pictures_switch(rows: Sequence[Markup], *, is_visit: bool) -> Markup | None:
    """The button that shows the list as pictures, which needs scripts; None without images.

    is_visit: for a visitor, who sees pictures at once if most of the entries are images.
    """
    count = sum(_IMAGE in row for row in rows)
    if not count:
        return None
    return tag(
        "button",
        icon("image"),
        "Pictures",
        type="button",
        class_="small quiet",
        data_pictures="first" if is_visit and 2 * count > len(rows) else True,
        aria_pressed="false",
        hidden=True,
    )


def groups(rows: Sequence[Markup]) -> list[Markup]:
    """The rows in groups. The style sheet knows how high a full one is; the last, if it is not full, is always laid out."""
    parts = [rows[at : at + GROUP_ROWS] for at in range(0, len(rows), GROUP_ROWS)]
    return [tag("tbody", part, class_="full" if len(part) == GROUP_ROWS else None) for part in parts]


def entry_row(number: int, name: str, child: Child, *, base: str, order: str, is_writable: bool) -> Markup:
    """The row of an entry. number: unique on the page. order: arguments that keep the order of the list, each after "&".

    base: the directory's address, "" if the page has that address.
    """
    label, target, is_long = f"n{number}", child.target, len(name) > LONGEST_SHOWN
    short = name[:LONGEST_SHOWN] + "…" if is_long else name
    quoted = "" if is_long else quote(name, safe="")
    in_path = base + quoted if not is_long and can_be_walked([name]) else None
    shown = short or "(no name)"
    size: int | None = None
    actions = []
    if isinstance(target, UnknownChild):
        address, picture, word = "", "unknown", ", unknown kind"
    elif isinstance(target, DirectoryCap):
        address = object_path(target.to_string(), directory=True) if in_path is None else f"{in_path}/"
        picture, word = "folder", ", directory"
        actions.append(fill(_LINK, kind="info", address=f"{address}?t=info", label=f"i {label}"))
    else:
        address = info_path(target, short) if in_path is None else f"{in_path}?t=info{order}"
        picture, word = _PICTURES.get(kind_of(short), "file"), ", editable file" if target.is_mutable else ""
        size = target.size if isinstance(target, ImmutableFileCap) else None
        # It leads to the address of the file itself: what a browser notes of a download is not the directory.
        save = file_path(target.to_string(), short, save=True) if is_long else f"{base}?t=save&name={quoted}"
        actions.append(fill(_LINK, kind="save", address=save, label=f"d {label}"))
    if is_writable and not is_long:
        actions.append(fill(_EDIT_LINK, address=f"{base}?t=rename-form&name={quoted}", label=label))
    cell = join(
        None if is_long else fill(_BOX, name=name, label=label),
        fill(_NAME_LINK if address else _NAME, short=shown, label=label, address=address),
        tag("span", word, class_="unseen") if word else None,
    )
    time = time_text(linked_at(child))
    return fill(_ROW, cell=cell, picture=picture, size=size_text(size), time=time, actions=actions)
