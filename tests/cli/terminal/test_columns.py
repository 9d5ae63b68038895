"""Aligned columns, and sizes as people read them."""

from __future__ import annotations

import pytest

from grid.cli.terminal.columns import WIDEST_COLUMN, aligned, shown_size, table


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (None, "-"),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (12_345, "12.3 kB"),
        (123_456, "123 kB"),
        (10**15, "1.00 PB"),
        (10**22, "10000 EB"),
    ],
)
def test_size_is_shown_in_three_digits_and_its_unit(size: int | None, shown: str) -> None:
    assert shown_size(size) == shown


def test_columns_are_aligned_to_the_right_unless_they_hold_capabilities() -> None:
    assert aligned([("1", "b", "URI:x"), ("10", "cc", "-")]) == [" 1  b URI:x", "10 cc -"]
    assert aligned([("b",), ("cc",)]) == ["b", "cc"] and aligned([]) == []


def test_table_has_headings_and_numbers_to_the_right() -> None:
    assert table(("NAME", "SIZE"), [("a", "1 B"), ("long", "10 kB")], numbers=("SIZE",)) == [
        "NAME   SIZE",
        "a       1 B",
        "long  10 kB",
    ]


def test_value_that_is_too_wide_widens_no_other_line() -> None:
    wide = "w" * (WIDEST_COLUMN + 1)
    assert aligned([(wide, "x"), ("a", "y")]) == [f"{wide} x", "a y"]
