"""The ranges of every share that the first request to a server fetches, before the layout is known. Pure.

It owns only the guess; the bytes are proven like any others. [spec immutable 14]
"""

from __future__ import annotations

from grid.immutable.share.layout import MAX_HEADER_SIZE, Guess
from grid.immutable.share.segment_run import run_sizes
from grid.immutable.share.verify import CHUNK_LEAVES, RowRanges
from grid.ports import Range
from grid.values import frozen

WHOLE_SHARE_SIZE = 65536
"""Shares up to this size are fetched whole by the first request."""

SPECULATED_BLOCK_BYTES = 786432
"""Most bytes of blocks that the first request to a server fetches, over all its shares: two blocks of a 3-of-10 file."""

SPECULATED_SEGMENTS = 2
"""The first request fetches the blocks of up to this many segments if the read needs no more; otherwise those of its first."""

TAIL_SLACK = 2048
"""Bytes requested beyond the guessed end: an older writer's extension block may be longer."""


@frozen(kw_only=True)
class Speculation:
    """What the first request fetches of each share: ranges, and from the first servers also blocks (at most one range)."""

    guess: Guess
    ranges: list[Range]
    blocks: list[Range]
    is_enough: bool
    """Whether the first answers of k servers may bring all that the read needs."""

    def covers(self, block_offset: int, size: int) -> bool:
        """Whether the first answers may have brought these bytes of a share's blocks."""
        if not self.blocks:
            return self.guess.share_size <= WHOLE_SHARE_SIZE
        start, length = self.blocks[0]
        offset = self.guess.layout.data_offset + block_offset
        return start <= offset and offset + size <= start + length

    def answer_size(self, *, with_blocks: bool) -> int:
        """Bytes to expect in an answer; most servers have at most one share."""
        size = 4096 + sum(length for _, length in self.ranges) // 4
        return size + sum(length for _, length in self.blocks) if with_blocks else size


def speculate(guess: Guess, first_segment: int, segment_count: int, server_count: int) -> Speculation:
    """The first request of a read of segment_count segments, starting at first_segment."""
    blocks = speculate_blocks(guess, first_segment, segment_count, server_count)
    few = bool(blocks and 0 < segment_count <= SPECULATED_SEGMENTS)
    return Speculation(
        guess=guess,
        ranges=speculate_ranges(guess, first_segment),
        blocks=blocks,
        is_enough=few or guess.share_size <= WHOLE_SHARE_SIZE,
    )


def speculate_ranges(guess: Guess, first_segment: int) -> list[Range]:
    """The ranges of a share that are worth fetching at once: the whole share, or its head and tail."""
    if guess.share_size <= WHOLE_SHARE_SIZE:
        return [(0, guess.share_size + TAIL_SLACK)]
    layout = guess.layout
    row = RowRanges(guess.geometry.segment_count, first_segment // CHUNK_LEAVES)
    return [
        (0, MAX_HEADER_SIZE),
        *row.ranges(layout.crypttext_tree_offset),
        *row.ranges(layout.block_tree_offset),
        (layout.chain_offset, guess.share_size + TAIL_SLACK - layout.chain_offset),
    ]


def speculate_blocks(guess: Guess, first_segment: int, segment_count: int, server_count: int) -> list[Range]:
    """The blocks worth fetching along with them if the shares are spread over all servers: at most one range."""
    geometry = guess.geometry
    if segment_count < 1 or server_count < 1 or guess.share_size <= WHOLE_SHARE_SIZE:
        return []
    count = segment_count if segment_count <= SPECULATED_SEGMENTS else 1
    count = min(count, geometry.segment_count - first_segment)
    size, _ = run_sizes(geometry, first_segment, count)
    shares_each = -(-geometry.n // server_count)
    if shares_each * size > SPECULATED_BLOCK_BYTES:
        return []
    return [(guess.layout.data_offset + geometry.block_offset(first_segment), size)]
