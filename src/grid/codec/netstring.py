"""Netstrings: a decimal length, a colon, the octets, a comma. [spec caps 2]"""

from __future__ import annotations

from grid.crypto.buffer import Buffer
from grid.errors import FormatError


def pack_netstring(value: Buffer) -> bytes:
    """The value, framed."""
    return b"".join((b"%d:" % len(value), value, b","))


def parse_netstring(data: Buffer, offset: int, limit: int) -> tuple[bytes, int]:
    """The value framed at `offset`, and the offset behind it; a copy.

    limit: the most octets the value may have; not more of the data is looked at. FormatError if there is no
    whole netstring, or its length is longer than the limit or has leading zeros.
    """
    head = bytes(data[offset : offset + len(str(limit)) + 1])
    digits, colon, _ = head.partition(b":")
    if not colon or not digits.isdigit() or (digits[0] == 0x30 and digits != b"0"):
        raise FormatError(f"no netstring of at most {limit} octets starts at offset {offset}")
    length = int(digits)
    if length > limit:
        raise FormatError(f"the netstring at offset {offset} has {length} octets, more than the {limit} allowed")
    start = offset + len(digits) + 1
    end = start + length
    if bytes(data[end : end + 1]) != b",":
        raise FormatError(f"the netstring at offset {offset} does not end after its {length} octets")
    return bytes(data[start:end]), end + 1
