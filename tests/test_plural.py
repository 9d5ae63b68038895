"""Counts in messages."""

from __future__ import annotations

from grid.plural import counted


def test_count_of_one_takes_the_singular_and_all_others_the_plural() -> None:
    assert [counted(n, "server") for n in (0, 1, 2)] == ["0 servers", "1 server", "2 servers"]
    assert [counted(n, "directory", "directories") for n in (1, 2)] == ["1 directory", "2 directories"]
