"""Estimates of the remaining time."""

from __future__ import annotations

from perf.runs.progress import Progress


def test_rest_while_nothing_was_done_is_not_known() -> None:
    assert Progress(4).describe(["a"] * 4) == "0/4"


def test_rest_is_estimated_from_cells_of_the_same_kind_and_else_from_all() -> None:
    progress = Progress(6)
    for kind, seconds in (("short", 1.0), ("short", 3.0), ("long", 100.0)):
        progress.add(kind, seconds)
    assert progress.remaining_s(["short", "long"]) == 102.0
    assert progress.remaining_s(["never done"]) == 104 / 3
    assert progress.describe(["short", "long"]) == "3/6, 2 min left"
    assert progress.describe([]) == "3/6, 0 s left"
