"""Buffers of equal length that are cut alike: piece j of each is in row j, like the blocks of a segment.

Pure arithmetic and views; nothing is copied. hashing.py hashes the pieces, in C if it can.
"""

from __future__ import annotations

from collections.abc import Sequence

from grid.crypto.buffer import Buffer
from grid.values import frozen


@frozen
class RowCut:
    """How buffers of equal length are cut into rows: `count` pieces of `size` bytes each, the last one of `last_size`.

    ValueError unless all three are at least 1, and the last piece is no longer than the others.
    """

    count: int
    size: int
    last_size: int

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for impossible numbers."""
        if self.count < 1 or not 1 <= self.last_size <= self.size:
            raise ValueError(f"nothing is cut into {self.count} pieces of {self.size} and {self.last_size} bytes")

    @property
    def run_size(self) -> int:
        """Bytes of one buffer."""
        return (self.count - 1) * self.size + self.last_size

    def pieces(self, run: Buffer) -> list[memoryview]:
        """The pieces of one buffer, as views."""
        view = memoryview(run)
        return [view[start : start + self.size] for start in range(0, self.run_size, self.size)]

    def rows(self, columns: Sequence[Buffer], total: int) -> list[list[memoryview]]:
        """For each row, its piece of every column. Those of the last row are cut where `total` bytes are reached."""
        rows = [list(row) for row in zip(*(self.pieces(run) for run in columns), strict=True)]
        if rows:
            rows[-1] = _cut_off(rows[-1], total - (self.count - 1) * self.size * len(columns))
        return rows

    def check(self, shares: Sequence[Buffer], columns: Sequence[Buffer], total: int) -> None:
        """Raise ValueError if a buffer has another length, or if `total` bytes of the columns do not end in the last row."""
        size = self.run_size
        if any(len(run) != size for runs in (shares, columns) for run in runs):
            raise ValueError(f"buffers of other lengths than {size} are not cut into rows")
        if not 0 <= total - len(columns) * (self.count - 1) * self.size <= len(columns) * self.last_size:
            raise ValueError(f"{total} bytes of {len(columns)} columns do not end in the last row")


def _cut_off(pieces: Sequence[memoryview], length: int) -> list[memoryview]:
    """The pieces, cut after the first `length` bytes."""
    kept = []
    for piece in pieces:
        if length <= 0:
            break
        kept.append(piece[:length])
        length -= len(piece)
    return kept
