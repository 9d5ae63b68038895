"""Buffers divided into rows: the pieces, and their hashes with and without the library."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from grid.crypto.hash_rows import RowCut
from grid.crypto.hashing import LeafHasher, hash_name, hash_rows, tagged_hash
from grid.crypto.multi_buffer import use_multi_buffer

LEAF, SEGMENT = b"a tag for leaves", b"another one, for segments, which is longer than a block of the hash function"


@frozen
class Case:
    """Buffers, how they are cut, and how many bytes of the columns count."""

    cut: RowCut
    shares: list[bytes]
    columns: list[bytes]
    total: int

    def segments(self) -> list[bytes]:
        """The rows of the columns, joined by other means than the code's."""
        size = self.cut.size
        starts = [index * size for index in range(self.cut.count if self.columns else 0)]
        made = [b"".join(run[start : start + size] for run in self.columns) for start in starts]
        return [row[: max(0, self.total - sum(map(len, made[:index])))] for index, row in enumerate(made)]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    size = draw(st.sampled_from([1, 2, 31, 32, 55, 63, 64, 65, 128, 300]) | st.integers(1, 300))
    cut = RowCut(draw(st.integers(1, 5)), size, draw(st.integers(1, size)))
    runs = st.lists(st.binary(min_size=cut.run_size, max_size=cut.run_size), max_size=5)
    shares, columns = draw(runs), draw(runs)
    last_row = len(columns) * cut.last_size
    left_out = draw(st.integers(0, last_row))
    return Case(cut, shares, columns, len(columns) * cut.run_size - left_out)


def hashes(case: Case) -> tuple[bytes, bytes]:
    """What the code makes of a case."""
    return hash_rows(case.cut, case.shares, LeafHasher(LEAF), case.columns, LeafHasher(SEGMENT), case.total)


@given(cases())
def test_rows_when_hashed_are_hashed_as_one_piece_after_the_other(case: Case) -> None:
    size, count = case.cut.size, case.cut.count
    pieces = [share[index * size : (index + 1) * size] for share in case.shares for index in range(count)]
    leaves = b"".join(tagged_hash(LEAF, piece) for piece in pieces)
    segments = b"".join(tagged_hash(SEGMENT, row) for row in case.segments())
    right = leaves, segments
    assert hashes(case) == right
    use_multi_buffer(False)
    try:
        assert hash_name() == "hashlib"
        assert hashes(case) == right
    finally:
        use_multi_buffer(True)


@given(cases())
def test_rows_when_cut_are_views_of_the_buffers(case: Case) -> None:
    rows = case.cut.rows(case.columns, case.total)
    assert [b"".join(row) for row in rows] == case.segments()
    assert all(any(piece.obj is run for run in case.columns) for row in rows for piece in row)
    assert all(b"".join(case.cut.pieces(share)) == share for share in case.shares)


@pytest.mark.parametrize("cut", [(0, 1, 1), (-1, 1, 1), (1, 0, 0), (1, 3, 0), (2, 3, 4), (1, -1, -1)])
def test_cut_when_nothing_can_be_cut_so_is_refused(cut: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="nothing is cut"):
        RowCut(*cut)


@pytest.mark.parametrize("use", [True, False])
@pytest.mark.parametrize(
    ("shares", "columns", "total"),
    [
        ([b"abcdef"], [], 0),
        ([b"abcd"], [], 0),
        ([], [b"abcde", b"abcdef"], 10),
        ([], [b"abcde"], 6),
        ([], [b"abcde"], 2),
        ([b"abcde"], [], 1),
        ([b"abcde"], [], -1),
    ],
)
def test_rows_when_sizes_do_not_fit_the_cut_are_refused(
    use: bool, shares: Sequence[bytes], columns: Sequence[bytes], total: int
) -> None:
    use_multi_buffer(use)
    try:
        with pytest.raises(ValueError, match=r"rows|last row"):
            hash_rows(RowCut(2, 3, 2), shares, LeafHasher(LEAF), columns, LeafHasher(SEGMENT), total)
    finally:
        use_multi_buffer(True)
