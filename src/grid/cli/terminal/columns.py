"""Aligned columns, and sizes for people. Pure.

It owns the limit on a column's width: anyone who can write a directory chooses names, and one long name must not
distort a listing. It neither prints nor escapes; values must be printable already.

Cost: one pass for the widths and one for the lines.
"""

from __future__ import annotations

from collections.abc import Sequence

WIDEST_COLUMN = 300
"""Characters up to which a column is aligned: a single name of 64 KiB must not widen all rows."""

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align rows with one space between columns. Columns align right, except a lone column and one of capabilities."""
    if not rows:
        return []
    left = [len(rows[0]) == 1 or any(value.startswith("URI") for value in column) for column in _columns(rows)]
    return _lines(rows, left, " ")


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str] = ()) -> list[str]:
    """Lines with headings, two spaces between columns. numbers: the headings of right-aligned columns."""
    return _lines([headings, *rows], [heading not in numbers for heading in headings], "  ")


def shown_size(size: int | None) -> str:
    """A size in the largest unit that leaves at least one digit before the point; `-` for None."""
    if size is None:
        return "-"
    power = 0
    while power < len(_UNITS) - 1 and size >= 1000 ** (power + 1):
        power += 1
    number = size / 1000**power
    return f"{size} B" if power == 0 else f"{number:.{2 if number < 10 else 1 if number < 100 else 0}f} {_UNITS[power]}"


def _lines(rows: Sequence[Sequence[str]], left: Sequence[bool], between: str) -> list[str]:
    """The rows as lines. left: for each column, whether it is left-aligned.

    A value wider than its column is not cut; it shifts the values after it.
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
