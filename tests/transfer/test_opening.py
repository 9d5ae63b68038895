"""Ends that lie in each other, on the grid: by the root directory and the path."""

from __future__ import annotations

from typing import Any

import pytest

from grid.caps import ChkCap, DirectoryCap
from grid.transfer.ends import EndError
from grid.transfer.grid_end import GridEnd
from grid.transfer.opening import require_apart
from grid.transfer.outcome import Plan


def end(number: int, *path: str) -> GridEnd:
    """A directory below one of several roots."""
    session: Any = None
    cap = ChkCap(key=bytes([number]) * 16, ueb_hash=bytes(32), needed=3, total=10, size=500)
    return GridEnd(session, DirectoryCap(body=cap), path, "/".join(path) or "root")


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (end(1), end(1, "copy"), "copy lies in root"),
        (end(1, "a"), end(1, "a", "b"), "a/b lies in a"),
        (end(1, "a"), end(1, "a"), "the same"),
        (end(1, "a", "b"), end(1, "a"), "--delete would remove it"),
    ],
)
def test_directories_of_one_root_that_lie_in_each_other_are_refused(
    source: GridEnd, target: GridEnd, words: str
) -> None:
    with pytest.raises(EndError, match=words):
        require_apart([source], target, Plan(delete=True))


@pytest.mark.parametrize(
    ("source", "target"), [(end(1), end(2, "copy")), (end(1, "a"), end(1, "ab")), (end(1, "a", "b"), end(1, "a", "c"))]
)
def test_directories_beside_each_other_are_taken(source: GridEnd, target: GridEnd) -> None:
    require_apart([source], target, Plan(delete=True))


def test_source_below_the_target_is_taken_if_nothing_is_deleted() -> None:
    require_apart([end(1, "a", "b")], end(1, "a"), Plan())
