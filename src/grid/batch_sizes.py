"""How many bytes of a file go together: what reads of immutable and of mutable files have in common. Pure."""

from __future__ import annotations

DEFAULT_MAX_SEGMENT_SIZE = 2**20
"""Bytes of text in a segment of a new immutable file; what 1.20 writes with. [spec immutable 2]"""

READ_BYTES = 8 * 2**20
"""Bytes of text in a full batch of a read: nearly three megabytes from each server of 3, and one message."""

WIDE_READ_BYTES = 2 * READ_BYTES
"""The same where more than WIDE_SHARES are needed: more servers are asked, and each for less."""

WIDE_SHARES = 10

PART_BYTES = 8 * 2**20
"""Bytes of one share that are asked for in one range."""


def full_read_bytes(k: int) -> int:
    """Bytes of text in a full batch of a file of which k shares are needed."""
    return WIDE_READ_BYTES if k > WIDE_SHARES else READ_BYTES
