"""The memory of puts by a transfer. Pure.

A put has two batches of shares at a time, one that is being encoded and one on its way. At its beginning there is one; once
everything has been read, no plaintext is left but that of the last batch.
"""

from __future__ import annotations

from grid.immutable.write.put_plan import LIVE_BYTES, WRITE_BYTES
from grid.node.config import ClientSettings

PUT_MEMORY = 60 * 2**20
"""Bytes that a put of a large file holds: batches of plaintext, and shares that servers have not confirmed."""

SHARES_OF_A_BYTE = 4
"""Bytes of shares for each byte of a file, and the byte itself."""


def memory_of_put(size: int) -> int:
    """Bytes that the put of a file of this size holds at most."""
    return min(PUT_MEMORY, SHARES_OF_A_BYTE * size)


def edges_of_put(size: int, settings: ClientSettings) -> tuple[int, int]:
    """The same for its first batch, and after its source was read."""
    plaintext = WRITE_BYTES * settings.needed // settings.total
    whole = memory_of_put(size)
    return min(whole, WRITE_BYTES + plaintext), min(whole, LIVE_BYTES)
