"""Builds HTML from values and escapes everything that is not markup already. Pure.

The only place where text becomes HTML. Names, capabilities and messages come from strangers: a plain `str` is always
escaped, and only this module makes `Markup`. It also formats numbers, times and sizes for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from html import escape

Value = str | int | float | bool | None

_SPECIAL = re.compile("[&<>\"'\0]")
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "source", "wbr"})


class Markup(str):
    """HTML that is already escaped."""

    __slots__ = ()


def tag(element: str, /, *parts: object, **attributes: Value) -> Markup:
    """An element. parts: text, which is escaped, Markup, or iterables of them; None adds nothing.

    attributes: `class_` stands for class, `data_name` for data-name. True makes a bare attribute; None and False omit
    it.
    """
    written = "".join([_attribute(key, value) for key, value in attributes.items()])
    if element in _VOID:
        return Markup(f"<{element}{written}>")
    return Markup(f"<{element}{written}>{''.join([_text(part) for part in parts])}</{element}>")


def join(*parts: object) -> Markup:
    """Concatenate all parts."""
    return Markup("".join([_text(part) for part in parts]))


def fill(shape: Markup, /, **values: object) -> Markup:
    """Markup made once, with these values in place of their names in braces: quicker than making it again and again.

    values: as the parts of `tag`. The shape has braces only around names.
    """
    return Markup(shape.format_map({name: _text(value) for name, value in values.items()}))


def _text(part: object) -> str:
    # A page of 500 entries comes here 16,000 times.
    if isinstance(part, Markup):
        return part
    if isinstance(part, str):
        return _escaped(part)
    if part is None:
        return ""
    if isinstance(part, Iterable):
        return "".join([_text(inner) for inner in part])
    return _escaped(str(part))


def _escaped(text: str) -> str:
    if _SPECIAL.search(text) is None:
        return text
    return escape(text.replace("\0", "\N{REPLACEMENT CHARACTER}"), quote=True)


def _attribute(key: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    return f" {_attribute_name(key)}" if value is True else f' {_attribute_name(key)}="{_text(str(value))}"'


@cache
def _attribute_name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


_PATHS = {
    "folder": "M3 6.5A1.5 1.5 0 0 1 4.5 5h4.4l2 2.2h8.6A1.5 1.5 0 0 1 21 8.7v9.8a1.5 1.5 0 0 1-1.5 1.5h-15A1.5 1.5 0 0 1 3 18.5z",
    "file": "M6 3.5h8l4.5 4.5v12.5H6zM14 3.5V8h4.5",
    "image": "M4 5h16v14H4zM4 16l4.5-4.5 4 4 3-3L20 17M15.5 9.2h.01",
    "media": "M4 5h16v14H4zM10 9v6l5-3z",
    "unknown": "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM9.6 9.4a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.2.9-1.2 1.8M12 16.6h.01",
    "upload": "M12 15.5V4.5M7.5 9 12 4.5 16.5 9M4.5 15v4.5h15V15",
    "download": "M12 4.5v11M7.5 11l4.5 4.5 4.5-4.5M4.5 15v4.5h15V15",
    "plus": "M12 5v14M5 12h14",
    "edit": "M5 19l1-4L16.5 4.5l3 3L9 18z",
    "eye": "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 14.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6z",
    "info": "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5.5M12 7.6h.01",
    "lock": "M6 10.5h12v9H6zM8.5 10.5V8a3.5 3.5 0 0 1 7 0v2.5",
    "key": "M8.5 18a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM11 12l8-8M15.5 7.5l2.5 2.5",
    "share": "M17.5 8.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM6.5 14.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM17.5 20.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM8.7 10.8l6.6-3.6M8.7 13.2l6.6 3.6",
    "shield": "M12 3.5l7.5 3v5c0 4.5-3.2 7.6-7.5 9-4.3-1.4-7.5-4.5-7.5-9v-5zM8.8 12l2.3 2.3 4.2-4.4",
    "server": "M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.01M7.5 16h.01",
    "trash": "M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7M10.5 10.5v6M13.5 10.5v6",
    "undo": "M8.5 4.5 4 9l4.5 4.5M4.5 9H14a5.5 5.5 0 0 1 0 11h-3.5",
    "chevron": "M9.5 5.5 16 12l-6.5 6.5",
    "grid": "M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z",
}


def icon(name: str) -> Markup:
    """A decorative icon; the text beside it carries the meaning.

    It refers to one of `all_icons`, which keeps long lists small.
    """
    return Markup(f'<svg class="icon" width="20" height="20" aria-hidden="true"><use href="#icon-{name}"/></svg>')


def all_icons() -> Markup:
    """The hidden definitions of a page's icons."""
    drawn = "".join(
        f'<symbol id="icon-{name}" viewBox="0 0 24 24"><path d="{path}"/></symbol>' for name, path in _PATHS.items()
    )
    return Markup(f'<svg width="0" height="0" class="unseen" aria-hidden="true" focusable="false">{drawn}</svg>')


_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def size_text(size: int | None) -> str:
    """A size with three significant digits; a dash if unknown."""
    if size is None:
        return "–"
    value, unit = float(size), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    if unit == 0:
        return f"{size} B"
    return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f} {_UNITS[unit]}"


def duration_text(seconds: float | None) -> str:
    """A duration; a dash if unknown."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.{0 if seconds >= 0.01 else 1}f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def time_text(unix_time: float | None) -> str:
    """A date and time in UTC; a dash if unknown or out of the calendar's range."""
    if unix_time is None:
        return "–"
    try:
        return f"{datetime.fromtimestamp(unix_time, UTC).isoformat(' ', 'minutes')[:16]} UTC"
    except (ValueError, OverflowError, OSError):
        return "–"


_TIME = tag("time", "{text}", datetime="{machine}")


def time_mark(unix_time: float | None) -> Markup:
    """The same, which scripts turn into the time of the reader's zone, as they do with the times in lists."""
    text = time_text(unix_time)
    date, has_date, rest = text.partition(" ")
    return fill(_TIME, text=text, machine=f"{date}T{rest[:5]}Z") if has_date else Markup(text)
