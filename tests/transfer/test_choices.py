"""What a transfer selects, compares, divides into ranges, and retries."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import ConfigError, FormatError, GridError, NoServersError, NoSpaceError, NotHappyError
from grid.transfer.choices import (
    CLOCK_NS,
    LONGEST_PAUSE_S,
    STREAMS,
    Comparison,
    Mode,
    choose_chunk_size,
    choose_ranges,
    is_same,
    may_pass,
    pause_before,
)
from grid.transfer.ends import EndError, Entry, NotThereError, PassingError, SourceChangedError
from grid.transfer.opening import choose_streams

SECOND_NS = 10**9
FILE = Entry(name="a", size=10, mtime_ns=100 * SECOND_NS, tag="t")


@pytest.mark.parametrize(
    ("comparison", "there", "same"),
    [
        ("time", FILE, True),
        ("time", evolve(FILE, mtime_ns=FILE.mtime_ns + CLOCK_NS - 1), True),  # type: ignore[operator]
        ("time", evolve(FILE, mtime_ns=FILE.mtime_ns + CLOCK_NS), False),  # type: ignore[operator]
        ("time", evolve(FILE, size=11), False),
        ("time", evolve(FILE, mtime_ns=None), False),
        ("size", evolve(FILE, mtime_ns=None, tag=""), True),
        ("size", evolve(FILE, size=None), False),
        ("checksum", evolve(FILE, mtime_ns=5), True),
        ("checksum", evolve(FILE, tag="u"), False),
        ("checksum", evolve(FILE, tag=""), False),
        ("update", evolve(FILE, size=11, mtime_ns=200 * SECOND_NS), True),
        ("update", evolve(FILE, size=11, mtime_ns=50 * SECOND_NS), False),
        ("update", evolve(FILE, mtime_ns=50 * SECOND_NS), False),
    ],
)
def test_files_when_compared_are_the_same_or_not(comparison: Comparison, there: Entry, *, same: bool) -> None:
    assert is_same(FILE, there, comparison) is same


def test_sizes_when_unknown_on_both_sides_do_not_agree() -> None:
    unknown = evolve(FILE, size=None)
    assert not any(is_same(unknown, unknown, comparison) for comparison in ("time", "size", "checksum"))


@given(
    mode=st.sampled_from(["auto", "chunked", "chunked-stream"]),
    size=st.integers(0, 2000),
    chunk=st.integers(1, 300),
)
def test_ranges_when_there_are_any_cover_the_file_once(mode: Mode, size: int, chunk: int) -> None:
    ranges = choose_ranges(mode, size, chunk)
    if ranges:
        assert [offset for offset, _ in ranges] == list(range(0, size, chunk))
        assert sum(length for _, length in ranges) == size
        assert all(0 < length <= chunk for _, length in ranges)
    else:
        assert size < 2 * chunk


def test_stream_never_has_ranges() -> None:
    assert not choose_ranges("stream", 10**9, 1)


@pytest.mark.parametrize(
    ("error", "is_passing"),
    [
        (PassingError("x"), True),
        (SourceChangedError("x"), True),
        (EndError("x"), False),
        (NotThereError("x"), False),
        (ConfigError("x"), False),
        (FormatError("x"), False),
        (NoSpaceError("x"), False),
        (NoServersError("x"), True),
        (GridError("x"), True),
        (NotHappyError("x", reached=0, happy=1), True),
        (NotHappyError("x", causes=[NoSpaceError("y")], reached=0, happy=1), False),
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (PermissionError(), False),
        (OSError(28, "No space left on device"), False),
        (ValueError(), False),
    ],
)
def test_errors_are_tried_again_only_where_that_can_help(error: Exception, *, is_passing: bool) -> None:
    assert may_pass(error) is is_passing


@pytest.mark.parametrize(
    ("size", "chunk_size"),
    [(0, 5), (79 * 2**20, 5), (81 * 2**20, 6), (160 * 2**20, 10), (2**30, 64), (10 * 2**30, 64)],
)
def test_chunks_that_nobody_chose_grow_with_the_file_within_bounds(size: int, chunk_size: int) -> None:
    assert choose_chunk_size(size) == chunk_size * 2**20


def test_streams_that_nobody_chose_are_several_unless_a_disk_is_read_in_order() -> None:
    def is_remote(text: str) -> bool:
        return text.startswith("work:")

    assert choose_streams(["data", "other"], "work:data", is_remote) == 1
    assert choose_streams(["data"], "s3://bucket/data", is_remote) == 1
    assert choose_streams(["data", "s3://bucket/data"], "work:data", is_remote) == STREAMS
    assert choose_streams(["work:data"], "s3://bucket/data", is_remote) == STREAMS
    assert choose_streams(["data"], "/mnt/data", is_remote) == STREAMS
    assert choose_streams(["data"], "sftp://host/data", is_remote) == STREAMS


def test_pauses_double_and_spread_and_end_at_a_minute() -> None:
    assert [pause_before(attempt, 0.999999) for attempt in (1, 2, 3)] == pytest.approx([0.5, 1, 2], rel=1e-3)
    assert pause_before(1, 0) == pytest.approx(0.25)
    assert pause_before(1000, 0.999999) <= LONGEST_PAUSE_S
