"""Paths of the file system and planned ranges, against a plain definition of both."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.caps import DirectoryCap, LitCap, SdmfWriteCap
from grid.errors import CapError, ChildOfWrongTypeError, NoSuchChildError
from grid.filesystem.paths import (
    LARGEST_MERGED,
    GridPath,
    parse_path,
    plan_reads,
    protocol_of,
    settle_range,
    shown,
    without_those_below,
)

ROOT = DirectoryCap(body=SdmfWriteCap(write_key=bytes(16), fingerprint=bytes(32)))
FILE = LitCap(data=b"small")
ALIASES = {"data": ROOT.to_string()}

OFFSETS = st.none() | st.integers(-30, 30)
RANGES = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), max_size=30)


def at(*names: str) -> GridPath:
    return GridPath(root=ROOT, names=names)


@pytest.mark.parametrize(
    ("path", "names"),
    [("data", ()), ("data/a", ("a",)), ("data//a/b/", ("a", "b")), (f"{ROOT.to_string()}/x", ("x",))],
)
def test_path_when_parsed_names_a_root_and_what_is_below_it(path: str, names: tuple[str, ...]) -> None:
    assert parse_path(path, ALIASES) == at(*names)


def test_path_when_it_begins_with_no_alias_and_no_capability_is_refused_without_naming_one() -> None:
    with pytest.raises(NoSuchChildError, match="no alias 'play'"):
        parse_path("play/a", ALIASES)
    with pytest.raises(CapError) as refused:
        parse_path("URI:SSK:nonsense/a", ALIASES)
    assert "nonsense" not in str(refused.value)


def test_path_below_a_file_or_above_a_root_is_refused() -> None:
    with pytest.raises(ChildOfWrongTypeError):
        _ = GridPath(root=FILE, names=("a",)).directory
    with pytest.raises(CapError):
        _ = at().parent
    assert at("a", "b").parent == at("a")


def test_path_when_shown_has_no_capability() -> None:
    assert shown("data/a") == "data/a"
    assert shown(f"{ROOT.to_string()}/a/b") == "[capability]/a/b"
    assert shown(ROOT.to_string()) == "[capability]"
    assert [protocol_of(path) for path in ("data/a", ROOT.to_string())] == ["grid", "grid+cap"]
    assert ROOT.to_string() not in repr(at("a"))


def test_paths_when_some_are_below_others_are_those_at_the_top() -> None:
    paths = [at("a", "b", "c"), at("a", "b"), at("ab"), at("a", "b"), at("c", "d")]
    assert set(without_those_below(paths)) == {at("a", "b"), at("ab"), at("c", "d")}
    assert len(without_those_below(paths)) == 3
    assert without_those_below([at(), at("a")]) == [at()]


@given(OFFSETS, OFFSETS, st.integers(0, 20))
def test_range_when_settled_is_the_slice_of_that_start_and_end(start: int | None, end: int | None, size: int) -> None:
    text = bytes(range(size))
    first, last = settle_range(start, end, size)
    assert 0 <= first <= last <= size
    assert text[first:last] == text[slice(start, end)]


@given(RANGES, st.integers(0, 20))
def test_reads_when_planned_hold_each_range_and_are_as_far_apart_as_asked(
    pairs: list[tuple[int, int]], gap: int
) -> None:
    ranges = [(min(pair), max(pair)) for pair in pairs]
    reads = plan_reads(ranges, gap)
    for start, end in ranges:
        assert start == end or any(first <= start and end <= last for first, last in reads)
    assert all(after[0] - before[1] > gap for before, after in pairwise(reads))
    wanted = {offset for start, end in ranges for offset in range(start, end)}
    read = {offset for start, end in reads for offset in range(start, end)}
    assert wanted <= read
    assert len(read - wanted) <= gap * max(0, len(set(ranges)) - 1)


def test_reads_when_together_they_would_be_large_stay_apart() -> None:
    half = LARGEST_MERGED // 2
    assert plan_reads([(0, half), (half, 2 * half), (2 * half, 3 * half)], 0) == [(0, 2 * half), (2 * half, 3 * half)]
    assert plan_reads([(0, 3 * half), (half, 2 * half)], 0) == [(0, 3 * half)]
