from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError
from grid.ports import Buffer, Range
from grid.wire.http.client.single_requests import MERGE_GAP, cut_ranges, plan_fetches
from grid.wire.http.format.ranges import Coverage, pack_content_range, pack_range, parse_content_range, parse_range


def test_range_when_packed_parses_to_itself() -> None:
    assert parse_range(pack_range(7, 3)) == (7, 3)
    assert parse_range(b"bytes=0-0") == (0, 1)
    assert parse_content_range(pack_content_range(7, 3)) == (7, 3)
    assert parse_content_range(b"bytes 0-9/10") == (0, 10)


@pytest.mark.parametrize(
    "value", [b"", b"bytes=5-", b"bytes=-5", b"bytes=5-4", b"bytes=0-1,3-4", b"items=0-1", b"bytes=a-b", b"bytes 0-1"]
)
def test_range_when_not_one_closed_range_is_refused(value: bytes) -> None:
    with pytest.raises(FormatError):
        parse_range(value)


@pytest.mark.parametrize("value", [b"", b"bytes */10", b"bytes 5-4/*", b"bytes 0-1", b"items 0-1/2", b"bytes=0-1/2"])
def test_content_range_when_not_a_range_of_bytes_is_refused(value: bytes) -> None:
    with pytest.raises(FormatError):
        parse_content_range(value)


SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted), max_size=8)


@given(SPANS, st.integers(0, 30), st.integers(0, 30))
def test_coverage_when_spans_are_added_knows_which_bytes_are_there(spans: list[list[int]], low: int, high: int) -> None:
    coverage, model = Coverage(30), set[int]()
    for start, end in spans:
        coverage.add(start, end)
        model |= set(range(start, end))
    missing = {byte for begin, end in coverage.missing() for byte in range(begin, end)}
    assert missing == set(range(30)) - model
    assert coverage.complete == (not missing)
    assert coverage.missing() == sorted(coverage.missing())
    there = [byte for begin, end in coverage.overlap(low, high) for byte in range(begin, end)]
    assert there == sorted(model & set(range(low, high)))
    assert coverage.span_count <= 1 + len(spans)


def test_coverage_when_of_nothing_is_never_complete() -> None:
    assert not Coverage(0).complete


@given(st.lists(st.tuples(st.integers(0, 20000), st.integers(0, 5000)), max_size=8), st.integers(0, 25000))
def test_fetches_when_cut_give_exactly_the_ranges(ranges: list[Range], size: int) -> None:
    share = bytes(index * 7 % 251 for index in range(size))
    fetches = plan_fetches(ranges)
    assert all(start + length + MERGE_GAP < following for (start, length), (following, _) in pairwise(fetches))
    fetched: dict[Range, Buffer] = {(start, length): share[start : start + length] for start, length in fetches}
    expected = [share[offset : offset + length] for offset, length in ranges]
    assert [bytes(piece) for piece in cut_ranges(ranges, fetched)] == expected
