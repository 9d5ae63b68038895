"""The sizes of an immutable file: its segments, and their blocks.

Owns all arithmetic on file size, k, N and segment size. It never touches a share's bytes and allocates
nothing: a geometry from a hostile extension block is only numbers. [spec immutable 2, 5, 7, 8]
"""

from __future__ import annotations

from grid import limits
from grid.engine.batches import DEFAULT_MAX_SEGMENT_SIZE
from grid.errors import FormatError
from grid.values import field, frozen

HASH_SIZE = 32
"""Bytes of every hash in a share."""


def ceil_divide(dividend: int, divisor: int) -> int:
    """The quotient, rounded up."""
    return -(-dividend // divisor)


def power_of_two_at_least(count: int) -> int:
    """The smallest power of two that is >= count, for count >= 1."""
    return 1 << (count - 1).bit_length()


@frozen(kw_only=True)
class Geometry:
    """The sizes of one file in bytes, and its counts. Everything follows from the first four attributes.

    size, k, n come from the capability; segment_size, a multiple of k, from the writer or the proven extension
    block. It may exceed the file's size. FormatError if no file can have these four.
    Segments are numbered from 0; the last one, the tail, may be shorter than the others.
    """

    size: int
    k: int
    n: int
    segment_size: int
    segment_count: int = field(init=False, repr=False, eq=False)
    tail_size: int = field(init=False, repr=False, eq=False)
    block_size: int = field(init=False, repr=False, eq=False)
    tail_block_size: int = field(init=False, repr=False, eq=False)
    padded_segment_count: int = field(init=False, repr=False, eq=False)

    @classmethod
    def of_file(cls, size: int, k: int, n: int, max_segment_size: int = DEFAULT_MAX_SEGMENT_SIZE) -> Geometry:
        """The geometry that a writer uses: segments of max_segment_size, rounded up to a multiple of k.

        FormatError if size, k, n or max_segment_size are out of bounds. [spec immutable 2]
        """
        _require_encoding(size, k, n)
        if max_segment_size < 1:
            raise FormatError(f"a segment cannot have {max_segment_size} bytes")
        segment_size = ceil_divide(min(size, max_segment_size), k) * k
        return cls(size=size, k=k, n=n, segment_size=segment_size)

    def __attrs_pre_init__(self, *, size: int, k: int, n: int, segment_size: int) -> None:
        """Check the values before anything is divided by them."""
        _require_encoding(size, k, n)
        # Rounding up to a multiple of k may pass the limit by less than k.
        if not k <= segment_size < limits.MAX_SEGMENT_SIZE + k:
            raise FormatError(f"segment size {segment_size} is not between {k} and {limits.MAX_SEGMENT_SIZE}")
        if segment_size % k:
            raise FormatError(f"segment size {segment_size} is not a multiple of the {k} shares needed")

    @segment_count.default
    def _segment_count(self) -> int:
        return ceil_divide(self.size, self.segment_size)

    @tail_size.default
    def _tail_size(self) -> int:
        return self.size - (self.segment_count - 1) * self.segment_size

    @block_size.default
    def _block_size(self) -> int:
        return self.segment_size // self.k

    @tail_block_size.default
    def _tail_block_size(self) -> int:
        return ceil_divide(self.tail_size, self.k)

    @padded_segment_count.default
    def _padded_segment_count(self) -> int:
        return power_of_two_at_least(self.segment_count)

    @property
    def padded_tail_size(self) -> int:
        """Bytes of the last segment as the erasure code sees it, with up to k - 1 zero bytes of padding."""
        return self.k * self.tail_block_size

    @property
    def data_size(self) -> int:
        """Bytes of all blocks of one share."""
        return (self.segment_count - 1) * self.block_size + self.tail_block_size

    @property
    def tree_size(self) -> int:
        """Bytes of one serialized per-segment tree."""
        return HASH_SIZE * (2 * self.padded_segment_count - 1)

    @property
    def padded_share_count(self) -> int:
        """Leaves of the share hash tree, padding included."""
        return power_of_two_at_least(self.n)

    @property
    def chain_entry_count(self) -> int:
        """Entries in the share hash chain that a writer stores: the siblings on the path to the root, and the leaf."""
        return self.padded_share_count.bit_length()

    def segment_offset(self, segment_index: int) -> int:
        """Offset of the segment in the file."""
        return segment_index * self.segment_size

    def segment_length(self, segment_index: int) -> int:
        """Bytes of the segment, without padding."""
        return self.tail_size if segment_index == self.segment_count - 1 else self.segment_size

    def padded_segment_length(self, segment_index: int) -> int:
        """Bytes of the segment as the erasure code sees it: k blocks."""
        return self.k * self.block_length(segment_index)

    def block_offset(self, segment_index: int) -> int:
        """Offset of the segment's block in the data section of a share. For segment_count: the end of the section."""
        return self.data_size if segment_index == self.segment_count else segment_index * self.block_size

    def block_length(self, segment_index: int) -> int:
        """Bytes of each block of the segment."""
        return self.tail_block_size if segment_index == self.segment_count - 1 else self.block_size

    def segment_range(self, offset: int, length: int) -> tuple[int, int]:
        """The half-open range of segments that contain these bytes of the file; empty if there are none."""
        end = min(offset + length, self.size)
        if offset < 0 or end <= offset:
            return 0, 0
        return offset // self.segment_size, ceil_divide(end, self.segment_size)


def _require_encoding(size: int, k: int, n: int) -> None:
    if not 1 <= k <= n <= limits.MAX_SHARES:
        raise FormatError(f"{k}-of-{n} is not an encoding: 1 <= needed <= total <= {limits.MAX_SHARES}")
    if not 1 <= size <= limits.MAX_FILE_SIZE:
        raise FormatError(f"a file of {size} bytes cannot be encoded into shares")
