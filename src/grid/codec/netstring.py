"""Netstrings: a decimal length, a colon, the bytes, a comma. [spec caps 2]"""

from __future__ import annotations

import re

from grid.crypto.buffer import Buffer
from grid.errors import FormatError

_HEAD = re.compile(rb"(0|[1-9][0-9]{0,18}):")
"""A length that some buffer may have."""


def pack_netstring(value: Buffer) -> bytes:
    """The value, framed."""
    return b"".join((b"%d:" % len(value), value, b","))


def parse_netstring(data: Buffer, offset: int, limit: int) -> tuple[bytes, int]:
    """The value framed at `offset` (a copy), and the offset after it. Raises the errors of `locate_netstring`."""
    start, end = locate_netstring(data, offset, limit)
    return bytes(data[start:end]), end + 1


def locate_netstring(data: Buffer, offset: int, limit: int) -> tuple[int, int]:
    """(begin, end) of the value framed at `offset`; a comma follows it.

    limit: the most bytes the value may have; no more of the data is read. FormatError if the netstring is
    incomplete, or if its length exceeds the limit or has leading zeros.
    """
    head = _HEAD.match(data, offset)
    if head is None:
        raise FormatError(f"no netstring of at most {limit} bytes starts at offset {offset}")
    length = int(head[1])
    if length > limit:
        raise FormatError(f"the netstring at offset {offset} has {length} bytes, more than the {limit} allowed")
    start = head.end()
    end = start + length
    if end >= len(data) or data[end] != 0x2C:
        raise FormatError(f"the netstring at offset {offset} does not end after its {length} bytes")
    return start, end
