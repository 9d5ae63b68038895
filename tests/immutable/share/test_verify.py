"""Proofs of a file: accepted only as a whole, kept within bounds, never overwritten."""

from __future__ import annotations

import pytest

from grid.errors import FormatError, IntegrityError
from grid.immutable.share.layout import parse_header
from grid.immutable.share.verify import CHUNK_LEAVES, KEPT_CHUNKS, FileVerifier, LeafRows, RowRanges
from grid.ports import ShareNumber
from tests.support.scripted_grid import encoded, noise
from tests.support.shares import EncodedFile

FILE = encoded(noise(6 * 1024 * 4), 2, 5, 4)


def verifier(file: EncodedFile = FILE) -> FileVerifier:
    cap = file.cap
    return FileVerifier(cap.ueb_hash, cap.size, cap.needed, cap.total)


def proven(file: EncodedFile = FILE) -> FileVerifier:
    known = verifier(file)
    known.accept_ueb(file.finished.ueb)
    return known


def chain(number: int) -> bytes:
    layout = parse_header(FILE.shares[number])
    return FILE.shares[number][layout.chain_offset : layout.ueb_offset]


def test_ueb_when_right_gives_the_geometry_and_again() -> None:
    known = verifier()
    assert known.accept_ueb(FILE.finished.ueb) == FILE.geometry
    assert known.accept_ueb(FILE.finished.ueb) == FILE.geometry
    assert known.ueb_bytes == FILE.finished.ueb


def test_ueb_when_any_byte_differs_is_refused_and_nothing_kept() -> None:
    for offset in range(len(FILE.finished.ueb)):
        wrong = bytearray(FILE.finished.ueb)
        wrong[offset] ^= 0x10
        known = verifier()
        with pytest.raises(IntegrityError):
            known.accept_ueb(wrong)
        assert known.geometry is None and known.ueb is None


def test_chain_when_right_proves_the_root_of_that_share_alone() -> None:
    known = proven()
    known.accept_chain(ShareNumber(3), chain(3))
    assert known.has_root(ShareNumber(3)) and not known.has_root(ShareNumber(2))
    known.accept_chain(ShareNumber(3), chain(3))


@pytest.mark.parametrize("data", [b"", chain(1), chain(3)[34:], chain(3)[:-34], bytes(34 * 4)])
def test_chain_when_of_another_share_or_short_is_refused(data: bytes) -> None:
    known = proven()
    with pytest.raises(IntegrityError):
        known.accept_chain(ShareNumber(3), data)
    assert not known.has_root(ShareNumber(3))


def test_rows_when_read_chunk_by_chunk_prove_each_and_keep_a_few() -> None:
    known = proven()
    rows = known.crypttext_rows
    assert rows is not None
    layout = parse_header(FILE.shares[0])
    chunks = range(-(-FILE.geometry.segment_count // CHUNK_LEAVES))
    assert len(chunks) > KEPT_CHUNKS
    for chunk in chunks:
        ranges = known.row_ranges(chunk)
        pieces = [FILE.shares[0][o : o + n] for o, n in ranges.ranges(layout.crypttext_tree_offset)]
        nodes = ranges.nodes(list(pieces))
        wrong = bytearray(pieces[0])
        wrong[-1] ^= 1
        with pytest.raises(IntegrityError):
            rows.accept(chunk, wrong, nodes)
        assert not rows.has(chunk)
        rows.accept(chunk, pieces[0], nodes)
        assert rows.leaves(chunk * CHUNK_LEAVES + 5, 2) == pieces[0][32 * 5 : 32 * 7]
    assert [chunk for chunk in chunks if rows.has(chunk)] == list(chunks[-KEPT_CHUNKS:])
    with pytest.raises(KeyError):
        rows.leaves(0, 1)


def test_rows_when_they_span_two_chunks_are_joined() -> None:
    known = proven()
    rows = LeafRows(FILE.geometry.segment_count, known.ueb.crypttext_root_hash if known.ueb else b"")
    layout = parse_header(FILE.shares[0])
    row = b""
    for chunk in range(2):
        ranges = known.row_ranges(chunk)
        pieces = [FILE.shares[0][o : o + n] for o, n in ranges.ranges(layout.crypttext_tree_offset)]
        rows.accept(chunk, pieces[0], ranges.nodes(list(pieces)))
        row += pieces[0]
    assert rows.leaves(CHUNK_LEAVES - 3, 6) == row[32 * (CHUNK_LEAVES - 3) : 32 * (CHUNK_LEAVES + 3)]


def test_row_ranges_when_pieces_are_short_or_too_few_are_refused() -> None:
    ranges = RowRanges(5000, 1)
    assert ranges.row_size == 32 * CHUNK_LEAVES and len(ranges.path) == 3
    right = [bytes(32 * CHUNK_LEAVES), bytes(32), bytes(32), bytes(32)]
    assert list(ranges.nodes(list(right))) == ranges.path
    for wrong in (right[:-1], [*right, b""], [right[0][1:], *right[1:]], [*right[:-1], bytes(31)], []):
        with pytest.raises(FormatError):
            ranges.nodes(list(wrong))


def test_row_ranges_when_the_tree_has_one_leaf_are_its_root() -> None:
    assert RowRanges(1, 0).ranges(100) == [(100, 32)]
