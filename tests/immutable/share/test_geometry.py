"""How files are divided into segments and blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError
from grid.immutable.share.geometry import Geometry
from grid.limits import MAX_FILE_SIZE, MAX_SEGMENT_SIZE

SEGMENT = 1200
SIZES = [1, SEGMENT - 1, SEGMENT, SEGMENT + 1, 3 * SEGMENT, 7 * SEGMENT + 5]


@st.composite
def encodings(draw: st.DrawFn) -> tuple[int, int]:
    n = draw(st.integers(1, 256))
    return draw(st.integers(1, n)), n


def test_segment_size_of_a_default_file_is_rounded_up_past_the_maximum() -> None:
    geometry = Geometry.of_file(10**9, 3, 10)
    assert geometry.segment_size == 1048578
    assert geometry.block_size == 349526


def test_segment_size_of_a_small_file_is_its_size_rounded_up() -> None:
    geometry = Geometry.of_file(56, 3, 10)
    assert (geometry.segment_size, geometry.segment_count, geometry.block_size) == (57, 1, 19)
    assert (geometry.tail_size, geometry.tail_block_size, geometry.padded_tail_size) == (56, 19, 57)


def test_known_file_of_ten_segments_has_the_sizes_of_the_specification() -> None:
    geometry = Geometry.of_file(1000, 3, 10, 102)
    assert (geometry.segment_count, geometry.tail_size, geometry.padded_tail_size) == (10, 82, 84)
    assert (geometry.padded_segment_count, geometry.tree_size) == (16, 32 * 31)
    assert (geometry.padded_share_count, geometry.chain_entry_count) == (16, 5)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("k", "n"), [(1, 1), (1, 5), (3, 10), (7, 7), (256, 256)])
def test_segments_and_blocks_cover_the_file_without_gap_or_overlap(size: int, k: int, n: int) -> None:
    geometry = Geometry.of_file(size, k, n, SEGMENT)
    file_end = data_end = 0
    for index in range(geometry.segment_count):
        assert geometry.segment_offset(index) == file_end
        assert geometry.block_offset(index) == data_end
        file_end += geometry.segment_length(index)
        data_end += geometry.block_length(index)
        assert 0 <= geometry.padded_segment_length(index) - geometry.segment_length(index) < k
    assert file_end == size
    assert data_end == geometry.data_size == geometry.block_offset(geometry.segment_count)


@given(encodings(), st.integers(1, MAX_FILE_SIZE), st.integers(1, 2**24))
def test_sizes_of_any_file_agree_with_each_other(encoding: tuple[int, int], size: int, maximum: int) -> None:
    k, n = encoding
    geometry = Geometry.of_file(size, k, n, maximum)
    assert geometry.segment_size % k == 0
    assert min(size, maximum) <= geometry.segment_size < min(size, maximum) + k
    assert (geometry.segment_count - 1) * geometry.segment_size + geometry.tail_size == size
    assert 0 < geometry.tail_size <= geometry.segment_size
    assert geometry.data_size == -(-size // k)
    assert geometry.segment_count <= geometry.padded_segment_count < 2 * geometry.segment_count
    assert geometry.padded_segment_count.bit_count() == 1
    assert geometry.padded_share_count == 2 ** (geometry.chain_entry_count - 1) >= n


@given(encodings(), st.integers(1, 10**6), st.integers(1, 10**4), st.integers(0, 10**6), st.integers(0, 10**6))
def test_segment_range_of_bytes_holds_them_and_no_more(
    encoding: tuple[int, int], size: int, maximum: int, offset: int, length: int
) -> None:
    geometry = Geometry.of_file(size, *encoding, maximum)
    first, past = geometry.segment_range(offset, length)
    end = min(offset + length, size)
    if end <= offset:
        assert first == past
    else:
        assert geometry.segment_offset(first) <= offset < geometry.segment_offset(first + 1)
        assert geometry.segment_offset(past - 1) < end <= geometry.segment_offset(past)


@pytest.mark.parametrize(("k", "n"), [(0, 1), (0, 0), (2, 1), (1, 257), (300, 300), (-1, 3)])
def test_encoding_out_of_bounds_is_refused(k: int, n: int) -> None:
    with pytest.raises(FormatError):
        Geometry.of_file(100, k, n)
    with pytest.raises(FormatError):
        Geometry(size=100, k=k, n=n, segment_size=12)


@pytest.mark.parametrize("size", [0, -1, MAX_FILE_SIZE + 1])
def test_size_out_of_bounds_is_refused(size: int) -> None:
    with pytest.raises(FormatError):
        Geometry.of_file(size, 3, 10)


@pytest.mark.parametrize("segment_size", [0, -3, 1, 4, 3 * (MAX_SEGMENT_SIZE // 3 + 1) + 3, 3 * 10**30])
def test_segment_size_that_is_impossible_is_refused(segment_size: int) -> None:
    with pytest.raises(FormatError):
        Geometry(size=100, k=3, n=10, segment_size=segment_size)


@pytest.mark.parametrize("maximum", [0, -1])
def test_maximum_segment_size_below_one_is_refused(maximum: int) -> None:
    with pytest.raises(FormatError):
        Geometry.of_file(100, 3, 10, maximum)


def test_segment_larger_than_the_file_is_one_segment() -> None:
    geometry = Geometry(size=100, k=3, n=10, segment_size=300)
    assert (geometry.segment_count, geometry.block_size, geometry.data_size) == (1, 100, 34)
