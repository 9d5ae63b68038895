"""Limits on one call to a storage server: share numbers, ranges, tests, writes, whole shares. Pure.

No caller is trusted: everything is checked before anything is allocated, looked up or read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grid.errors import FormatError
from grid.limits import MAX_SHARES, MAX_SLOT_VECTORS, MAX_SLOT_WRITE, STORE_CALL_BYTES, STORE_CALL_SHARES
from grid.ports import NewShares, Range, ShareNumber, TestWrite


def check_numbers(numbers: Iterable[int]) -> None:
    """Raise FormatError unless all are share numbers."""
    if not all(0 <= number < MAX_SHARES for number in numbers):
        raise FormatError(f"share numbers are 0 to {MAX_SHARES - 1}")


def check_ranges(rows: Iterable[Sequence[Range]], most: int, most_size: int | None = None) -> None:
    """Raise FormatError if there are more than `most` ranges, or if they have more than most_size bytes together."""
    count = size = 0
    for ranges in rows:
        count += len(ranges)
        if count > most:
            raise FormatError(f"more than {most} ranges at once")
        for offset, length in ranges:
            if offset < 0 or length < 0:
                raise FormatError("a negative offset or length")
            size += length
    if most_size is not None and size > most_size:
        raise FormatError(f"a read of {size} bytes at once; at most {most_size} are possible")


def check_stores(stores: Sequence[NewShares]) -> None:
    """Raise FormatError unless one call may store these whole shares."""
    for new in stores:
        check_numbers(new.shares)
        if not new.shares or len({sum(map(len, pieces)) for pieces in new.shares.values()}) != 1:
            raise FormatError("a store needs one or more shares of a file, all of one size")
    if sum(len(new.shares) for new in stores) > STORE_CALL_SHARES:
        raise FormatError(f"more than {STORE_CALL_SHARES} whole shares at once")
    if sum(new.size for new in stores) > STORE_CALL_BYTES:
        raise FormatError(f"more than {STORE_CALL_BYTES} bytes of whole shares at once")


def check_vectors(writes: Mapping[ShareNumber, TestWrite]) -> None:
    """Raise FormatError unless one call may have these tests and writes."""
    check_numbers(writes)
    size = 0
    for vector in writes.values():
        check_ranges([[(offset, length) for offset, length, _ in vector.tests]], MAX_SLOT_VECTORS)
        check_ranges([[(offset, 0) for offset, _ in vector.writes]], MAX_SLOT_VECTORS)
        if vector.new_length is not None and vector.new_length < 0:
            raise FormatError("a negative length")
        size += sum(len(data) for _, data in vector.writes)
    if size > MAX_SLOT_WRITE:
        raise FormatError(f"a write of {size} bytes at once; at most {MAX_SLOT_WRITE} are possible")
