"""The sizes of one version of a mutable file: segments, blocks, hash trees. [spec mutable 4, 8, 9]

Pure. Every number that may come from outside is checked here before anything is computed with it.
"""

from __future__ import annotations

from typing import Literal, Protocol

from grid.codec.merkle import padded_leaf_count
from grid.errors import FormatError
from grid.limits import MAX_FILE_SIZE, MAX_MUTABLE_SEGMENTS, MAX_MUTABLE_SHARES, MAX_SEGMENT_SIZE
from grid.values import frozen

SDMF_VERSION = 0
MDMF_VERSION = 1
SALT_SIZE = 16
HASH_SIZE = 32
CHAIN_ENTRY_SIZE = 34
MDMF_SEGMENT_SIZE = 131072
"""Bytes of plaintext per segment in a new MDMF file, before rounding up to a multiple of k."""

FormatName = Literal["sdmf", "mdmf"]


class Encoding(Protocol):
    """How to encode a new file: k of n shares needed, on at least `happy` servers that each hold one of their own."""

    @property
    def k(self) -> int:
        """Shares needed."""

    @property
    def n(self) -> int:
        """Shares made."""

    @property
    def happy(self) -> int:
        """Servers that must each hold a share of their own."""


def round_up(number: int, step: int) -> int:
    """The number, rounded up to a multiple of step."""
    return -(-number // step) * step


@frozen(kw_only=True)
class Geometry:
    """Sizes in bytes. version: 0 is SDMF, 1 is MDMF. segment_size: a multiple of k; 0 only if there are no segments.

    FormatError if no version of a file has these numbers.
    """

    version: int
    size: int
    k: int
    n: int
    segment_size: int

    def __attrs_post_init__(self) -> None:
        """Check the values."""
        if not 1 <= self.k <= self.n <= MAX_MUTABLE_SHARES:
            raise FormatError(f"{self.k}-of-{self.n} is not an encoding of a mutable file")
        if not 0 <= self.size <= MAX_FILE_SIZE:
            raise FormatError(f"a mutable file cannot have {self.size} bytes")
        if not 0 <= self.segment_size <= MAX_SEGMENT_SIZE or self.segment_size % self.k:
            raise FormatError(f"segments of {self.segment_size} bytes are impossible for {self.k}-of-{self.n}")
        if self.size and not self.segment_size:
            raise FormatError("a file that is not empty has segments")
        if self.version == SDMF_VERSION and self.size > self.segment_size:
            raise FormatError("an SDMF file has one segment")
        if self.version not in {SDMF_VERSION, MDMF_VERSION}:
            raise FormatError(f"version {self.version} of mutable shares is unknown")
        if self.segment_count > MAX_MUTABLE_SEGMENTS:
            raise FormatError(f"{self.segment_count} segments are too many")

    @classmethod
    def of_file(cls, version: int, size: int, k: int, n: int) -> Geometry:
        """The geometry of a new file of `size` bytes; FormatError."""
        if not 1 <= k <= n <= MAX_MUTABLE_SHARES:
            raise FormatError(f"{k}-of-{n} is not an encoding: mutable files take 1 <= needed <= total <= 255")
        segment_size = round_up(size if version == SDMF_VERSION else MDMF_SEGMENT_SIZE, k)
        return cls(version=version, size=size, k=k, n=n, segment_size=segment_size)

    @property
    def segment_count(self) -> int:
        """Number of segments; 0 for an empty file."""
        return -(-self.size // self.segment_size) if self.size else 0

    @property
    def block_size(self) -> int:
        """Bytes of a full block."""
        return self.segment_size // self.k

    @property
    def salt_size(self) -> int:
        """Bytes of salt before each block."""
        return SALT_SIZE if self.version == MDMF_VERSION else 0

    @property
    def stride(self) -> int:
        """Bytes from one block with its salt to the next."""
        return self.salt_size + self.block_size

    @property
    def tail_size(self) -> int:
        """Bytes of the last segment; 0 if there are no segments."""
        return self.size - max(0, self.segment_count - 1) * self.segment_size

    def segment_length(self, segment: int) -> int:
        """Bytes of that segment, without padding."""
        return min(self.segment_size, self.size - segment * self.segment_size)

    def block_length(self, segment: int) -> int:
        """Bytes of that segment's block, without salt."""
        return -(-self.segment_length(segment) // self.k)

    def run_offset(self, segment: int) -> int:
        """Offset of the segment's salt and block in the data of a share. For segment_count: the end of the data."""
        if segment < self.segment_count or not segment:
            return segment * self.stride
        return (segment - 1) * self.stride + self.salt_size + self.block_length(segment - 1)

    def run_sizes(self, first: int, count: int) -> tuple[int, int]:
        """(bytes per share, bytes of text) of consecutive segments."""
        stop = first + count
        text = min(stop * self.segment_size, self.size) - first * self.segment_size
        return self.run_offset(stop) - self.run_offset(first), text

    @property
    def data_size(self) -> int:
        """Bytes of all blocks and salts in one share."""
        return self.run_offset(self.segment_count)

    @property
    def leaf_count(self) -> int:
        """Leaves of a block hash tree, without padding."""
        return self.segment_count

    @property
    def tree_size(self) -> int:
        """Bytes of a share's block hash tree."""
        return HASH_SIZE * (2 * padded_leaf_count(self.segment_count) - 1)

    @property
    def chain_size(self) -> int:
        """Bytes of a share hash chain."""
        return CHAIN_ENTRY_SIZE * (padded_leaf_count(self.n).bit_length() - 1)

    def segment_range(self, offset: int, length: int) -> tuple[int, int]:
        """(first, stop): the segments that contain those bytes of the file, of which there must be at least one."""
        return offset // self.segment_size, (offset + length - 1) // self.segment_size + 1
