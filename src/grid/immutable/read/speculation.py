"""The ranges worth asking of every share before anything is known of it: part of the first question of a read. Pure.

It owns the guess alone; what comes of it is proven like any other bytes. [spec immutable 14]
"""

from __future__ import annotations

from grid.immutable.share.layout import MAX_HEADER_SIZE, Guess
from grid.immutable.share.segment_run import run_sizes
from grid.immutable.share.verify import CHUNK_LEAVES, RowRanges
from grid.ports import Range

WHOLE_SHARE_SIZE = 65536
"""Shares up to this size are fetched whole by the first question."""

SPECULATED_BLOCK_BYTES = 786432
"""Bytes of blocks that the first question to a server may fetch of all its shares together: two of 3-of-10."""

SPECULATED_SEGMENTS = 2
"""Segments whose blocks the first question fetches where the read needs no more; else those of its first alone."""

TAIL_SLACK = 2048
"""Bytes asked for beyond the guessed end: an older writer's extension block may be longer."""


def speculate(guess: Guess, first_segment: int) -> list[Range]:
    """The ranges of a share worth fetching before anything is known of it: all of it, or its head and tail."""
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
    """The blocks worth fetching along with them, if every server has its part of the shares: one range or none."""
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
