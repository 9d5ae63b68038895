"""Chunks of a read: large for fast clients, one segment for slow ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grid.gateway.shared.open_files import BOLD_SIZE, FEW, LARGEST_SIZE, MOMENT_S, TOGETHER_SIZE, ReadChunks

SEGMENT = 1048578
END = 10**11


def test_chunk_when_few_read_then_the_first_is_large_and_ends_with_a_segment() -> None:
    stop = ReadChunks(SEGMENT, FEW - 1).next_stop(5, END)
    assert stop % SEGMENT == 0 and BOLD_SIZE - SEGMENT < stop <= BOLD_SIZE


def test_chunk_when_many_read_then_the_first_is_one_segment() -> None:
    chunks = ReadChunks(SEGMENT, FEW)
    assert chunks.next_stop(0, END) == SEGMENT
    assert chunks.next_stop(SEGMENT + 7, END) == 2 * SEGMENT


def test_chunk_when_the_client_is_fast_then_grows_to_the_largest() -> None:
    chunks = ReadChunks(SEGMENT, FEW)
    chunks.taken(SEGMENT, 0.0)
    assert LARGEST_SIZE - SEGMENT < chunks.next_stop(0, END) <= LARGEST_SIZE


def test_chunk_when_others_have_taken_the_memory_then_has_what_is_left_or_one_segment() -> None:
    chunks = ReadChunks(SEGMENT, FEW)
    chunks.taken(SEGMENT, 0.0)
    assert chunks.next_stop(0, END, TOGETHER_SIZE // 32) <= TOGETHER_SIZE // 32
    assert chunks.next_stop(0, END, 0) == SEGMENT


def test_chunk_when_the_client_is_slow_then_is_what_it_takes_in_a_moment() -> None:
    chunks = ReadChunks(SEGMENT, 0)
    chunks.taken(8 * SEGMENT, 4 * MOMENT_S)
    assert chunks.next_stop(0, END) == 2 * SEGMENT
    chunks.taken(2 * SEGMENT, 100.0)
    assert chunks.next_stop(0, END) == SEGMENT


@given(
    st.integers(1, 2**28),
    st.integers(0, 10),
    st.integers(0, 2**40),
    st.integers(1, 2**40),
    st.floats(0, 1e9),
    st.integers(0, 2**40),
)
def test_chunk_when_anything_was_taken_then_advances_but_not_too_far(
    segment: int, others: int, position: int, length: int, waited_s: float, size: int
) -> None:
    chunks = ReadChunks(segment, others)
    chunks.taken(size, waited_s)
    stop = chunks.next_stop(position, position + length)
    assert position < stop <= position + length
    assert stop - position <= max(segment, LARGEST_SIZE)
