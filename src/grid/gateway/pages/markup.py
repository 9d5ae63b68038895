"""HTML out of values, with everything escaped that is not markup already. Pure.

The only place where text becomes HTML. Names, capabilities and messages come from strangers; what is a plain `str`
is always escaped, and only what this module made is `Markup`.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

Value = str | int | float | bool | None

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "source", "wbr"})


class Markup(str):
    """HTML, escaped already."""

    __slots__ = ()


def tag(element: str, /, *parts: object, **attributes: Value) -> Markup:
    """An element. parts: text, which is escaped, Markup, or iterables of them; None is nothing.

    attributes: `class_` is class, `data_name` data-name; True is a bare attribute, None and False are none at all.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if element in _VOID:
        return Markup(f"<{element}{written}>")
    return Markup(f"<{element}{written}>{join(*parts)}</{element}>")


def join(*parts: object) -> Markup:
    """All parts, one after the other."""
    return Markup("".join(_text(part) for part in parts))


def _text(part: object) -> str:
    if part is None:
        return ""
    if isinstance(part, Markup):
        return part
    if isinstance(part, str):
        return escape(part.replace("\0", "\N{REPLACEMENT CHARACTER}"), quote=True)
    if isinstance(part, Iterable):
        return "".join(_text(inner) for inner in part)
    return escape(str(part), quote=True)


def _attribute(key: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{_text(str(value))}"'
