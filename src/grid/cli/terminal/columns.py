"""Lines of aligned columns, and sizes for people. Pure.

It owns how wide a column may become: names come from anyone who can write a directory, and a listing must stay in proportion to
them. It prints nothing, and escapes nothing: values are printable text already.

Cost: one pass for the widths and one for the lines.
"""

from __future__ import annotations

from collections.abc import Sequence

WIDEST_COLUMN = 300
"""Characters up to which the values of a column are aligned: a name may have 64 KiB, and others need not be as long."""

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row, one space between columns: to the right, but for a lone column and one with capabilities."""
    if not rows:
        return []
    left = [len(rows[0]) == 1 or any(value.startswith("URI") for value in column) for column in _columns(rows)]
    return _lines(rows, left, " ")


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str] = ()) -> list[str]:
    """Lines with headings, two spaces between columns. numbers: the headings of columns aligned to the right."""
    return _lines([headings, *rows], [heading not in numbers for heading in headings], "  ")


def shown_size(size: int | None) -> str:
    """A number of bytes in the largest unit that leaves one digit or more before the point; `-` for None."""
    if size is None:
        return "-"
    power = 0
    while power < len(_UNITS) - 1 and size >= 1000 ** (power + 1):
        power += 1
    number = size / 1000**power
    return f"{size} B" if power == 0 else f"{number:.{2 if number < 10 else 1 if number < 100 else 0}f} {_UNITS[power]}"


def _lines(rows: Sequence[Sequence[str]], left: Sequence[bool], between: str) -> list[str]:
    """The rows as lines. left: of each column, whether it is aligned to the left.

    A value that is wider than its column stays as it is, and moves what follows it.
    """
    widths = [
        max((len(value) for value in column if len(value) <= WIDEST_COLUMN), default=0) for column in _columns(rows)
    ]
    lines = []
    for row in rows:
        cells = [
            value.ljust(width) if is_left else value.rjust(width)
            for value, width, is_left in zip(row, widths, left, strict=True)
        ]
        lines.append(between.join(cells).rstrip())
    return lines


def _columns(rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    return list(zip(*rows, strict=True))
