"""Decoding a run: right blocks give the text, false ones are named, contradictions are the uploader's."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from grid.codec import erasure as erasure_module
from grid.codec.erasure import ZfecErasure
from grid.codec.merkle import padded_leaf_count
from grid.crypto.multi_buffer import use_multi_buffer
from grid.errors import DamagedFileError
from grid.immutable.share.layout import parse_header
from grid.immutable.share.segment_run import SegmentRun, open_run, run_sizes
from grid.ports import ShareNumber
from tests.support.scripted_grid import encoded, noise
from tests.support.shares import EncodedFile

TEXT = noise(1003)
FILE = encoded(TEXT, 3, 7, 102)


def make_run(numbers: list[int], first: int, count: int, file: EncodedFile = FILE, *, key: bool = True) -> SegmentRun:
    geometry = file.geometry
    size, _ = run_sizes(geometry, first, count)
    row = padded_leaf_count(geometry.segment_count) - 1 + first
    blocks, leaves = {}, {}
    crypttext = b""
    for number in numbers:
        share, layout = file.shares[number], parse_header(file.shares[number])
        start = layout.data_offset + geometry.block_offset(first)
        blocks[ShareNumber(number)] = share[start : start + size]
        tree = layout.block_tree_offset + 32 * row
        leaves[ShareNumber(number)] = share[tree : tree + 32 * count]
        tree = layout.crypttext_tree_offset + 32 * row
        crypttext = share[tree : tree + 32 * count]
    return SegmentRun(
        geometry=geometry,
        first_segment=first,
        segment_count=count,
        key=file.cap.key if key else None,
        blocks=blocks,
        leaves=leaves,
        crypttext_leaves=crypttext,
    )


@given(
    numbers=st.permutations(range(7)).map(lambda order: order[:3]),
    first=st.integers(0, 9),
    count=st.integers(1, 10),
)
def test_run_when_the_blocks_are_right_gives_the_text(numbers: list[int], first: int, count: int) -> None:
    count = min(count, FILE.geometry.segment_count - first)
    result = open_run(make_run(numbers, first, count))
    assert not result.bad
    assert result.text == TEXT[first * 102 : (first + count) * 102]
    ciphertext = open_run(make_run(numbers, first, count, key=False)).text
    assert len(ciphertext) == len(result.text) and ciphertext != result.text


@given(st.data())
def test_run_when_it_is_of_any_file_gives_the_text_with_the_libraries_and_without(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    k = data.draw(st.integers(1, n))
    text = noise(data.draw(st.integers(1, 900)))
    file = encoded(text, k, n, data.draw(st.integers(1, 400)))
    geometry = file.geometry
    first = data.draw(st.integers(0, geometry.segment_count - 1))
    count = data.draw(st.integers(1, geometry.segment_count - first))
    whole = make_run(data.draw(st.permutations(range(n)))[:k], first, count, file)
    right = text[geometry.segment_offset(first) : geometry.segment_offset(first + count)]
    assert open_run(whole).text == right
    use_multi_buffer(False)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(erasure_module, "erasure", ZfecErasure)
            assert open_run(whole).text == right
    finally:
        use_multi_buffer(True)


def test_run_when_all_blocks_are_false_names_them_all() -> None:
    whole = make_run([1, 2, 5], 0, 10)
    blocks = {number: bytes(255 - byte for byte in memoryview(run)) for number, run in whole.blocks.items()}
    result = open_run(evolve(whole, blocks=blocks))
    assert result.text == b"" and result.bad == {number: list(range(10)) for number in (1, 2, 5)}


def test_run_when_a_buffer_has_the_wrong_size_is_refused() -> None:
    for numbers in ([0, 1, 2], [1, 4, 6]):
        whole = make_run(numbers, 0, 2)
        with pytest.raises(ValueError, match=r"bytes|lengths"):
            open_run(evolve(whole, blocks={**whole.blocks, ShareNumber(1): bytes(67)}))


def test_run_when_any_block_is_false_names_it_and_gives_nothing() -> None:
    whole = make_run([0, 4, 6], 7, 3)
    for offset in range(len(whole.blocks[ShareNumber(4)])):
        wrong = bytearray(whole.blocks[ShareNumber(4)])
        wrong[offset] ^= 1
        result = open_run(evolve(whole, blocks={**whole.blocks, ShareNumber(4): bytes(wrong)}))
        assert result.text == b""
        assert result.bad == {4: [7 + offset // 34]}


def test_run_when_proven_blocks_give_another_text_blames_the_uploader() -> None:
    whole = make_run([0, 1, 2], 0, 2)
    with pytest.raises(DamagedFileError, match="damaged when uploaded"):
        open_run(evolve(whole, crypttext_leaves=whole.crypttext_leaves[32:] + whole.crypttext_leaves[:32]))


def test_run_sizes_when_the_tail_is_in_it_are_shorter() -> None:
    assert run_sizes(FILE.geometry, 0, 2) == (68, 204)
    assert run_sizes(FILE.geometry, 8, 2) == (34 + 29, 102 + 85)
