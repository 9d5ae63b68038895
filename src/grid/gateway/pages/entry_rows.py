"""The rows of a directory's page, kept small because a page has 500 of them. Pure. [spec webapi 10]

The controls of a row belong to forms that the page has once. Their labels are made of words that the page has once and
of the entry's name (`row_words`). A row contains no capability, so a page of rows can be compressed; only an entry whose
name no address can contain is linked by its capability. (decision 348)
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from grid.caps import DirectoryCap, ImmutableFileCap, KnownCap, UnknownChild
from grid.directory.pack import Child
from grid.gateway.pages.entries import info_path, linked_at
from grid.gateway.pages.file_cards import kind_of
from grid.gateway.pages.links import can_be_walked, file_path, object_path, with_arguments
from grid.gateway.pages.markup import Markup, size_text, tag, time_text
from grid.gateway.pages.selection import FORM
from grid.gateway.pages.shell import hidden

LONGEST_SHOWN = 1000
"""Characters shown of a name. A longer one would not fit in an address, and cannot be selected or renamed."""

_DOWNLOADS = "get"
_WORDS = {"s": "Select", "d": "Download", "i": "Details of", "e": "Rename, move or delete"}
_PICTURES = {"image": "image", "video": "media", "audio": "media"}


def row_words(path: str) -> Markup:
    """What all rows share: the words of their labels, and the form of their downloads. path: the directory's address."""
    words = [tag("span", word, id=name) for name, word in _WORDS.items()]
    return tag("form", hidden(t="save"), words, id=_DOWNLOADS, action=path, method="get", hidden=True)


def entry_row(
    number: int, name: str, child: Child, *, base: str, order: Mapping[str, str], is_writable: bool
) -> Markup:
    """The row of an entry. number: unique on the page. order: arguments that keep the order of the list.

    base: the directory's address, "" if the page has that address.
    """
    label, target, is_long = f"n{number}", child.target, len(name) > LONGEST_SHOWN
    short = name[:LONGEST_SHOWN] + "…" if is_long else name
    in_path = base + quote(name, safe="") if not is_long and can_be_walked([name]) else None
    shown = tag("bdi", short or "(no name)", id=label)
    size: int | None = None
    actions = []
    if isinstance(target, UnknownChild):
        link, picture, word = shown, "unknown", ", unknown kind"
    elif isinstance(target, DirectoryCap):
        address = object_path(target.to_string(), directory=True) if in_path is None else f"{in_path}/"
        link, picture, word = tag("a", shown, href=address), "folder", ", directory"
        actions.append(_link("info", with_arguments(address, t="info"), f"i {label}"))
    else:
        about = info_path(target, short) if in_path is None else with_arguments(in_path, t="info", **order)
        link, picture = tag("a", shown, href=about), _PICTURES.get(kind_of(short), "file")
        word = ", file, can be changed" if target.is_mutable else ""
        size = target.size if isinstance(target, ImmutableFileCap) else None
        actions.append(_download(target, short, label, by_form=not is_long and _survives_forms(name)))
    if is_writable and not is_long:
        address = with_arguments(base, t="rename-form", name=name)
        actions.append(_link("edit", address, f"e {label}", data_dialog=True))
    kind = tag("span", word, class_="unseen") if word else None
    box = None if is_long else _pick_box(name, label)
    cell = tag("th", box, link, kind, scope="row", class_=picture)
    return tag("tr", cell, tag("td", size_text(size)), tag("td", time_text(linked_at(child))), tag("td", actions))


def _pick_box(name: str, label: str) -> Markup:
    box = tag("input", type="checkbox", name="name", value=name, form=FORM, aria_labelledby=f"s {label}")
    return tag("label", box, class_="pick")


def _download(cap: KnownCap, name: str, label: str, *, by_form: bool) -> Markup:
    """A button of the form of downloads, or else a link.

    The form is answered with the address of the file itself: what a browser notes of a download is not the directory.
    """
    if by_form:
        return tag("button", class_="save", form=_DOWNLOADS, name="name", value=name, aria_labelledby=f"d {label}")
    return _link("save", file_path(cap.to_string(), name, save=True), f"d {label}", download=True)


def _survives_forms(name: str) -> bool:
    """Whether browsers send this value of a form unchanged."""
    return not any(character in "\r\n\0" for character in name)


def _link(kind: str, address: str, label: str, **attributes: bool) -> Markup:
    return tag("a", class_=kind, href=address, aria_labelledby=label, **attributes)
