"""The packed form of reads of mutable slots, and of combined tests and writes. Pure.

An extension of this project's servers: a call is one or two byte strings, however many shares, tests and ranges it
has, and costs the transport one token for each. All numbers are big-endian. A read request is a count u16,
that many share numbers u8 (none: all), and the ranges in the form of `grid.wire.packed.share_ranges`.

A write is a head and the data. The head has the write enabler, the renewal and cancel secrets (32 bytes each), the
count of ranges u32 and of shares u16; the ranges (offset u64, length u64); and of each share: its number u8, how many
tests u32 and writes u32 it has, whether there is a new length u8, and that u64; its tests (offset u64, length u64, bytes
of the specimen u32, the specimen), and its writes (offset u64, bytes u32). The data are those of all writes, in the same order.
The answer is u8 whether all tests held, and an answer in the form of `grid.wire.packed.share_ranges`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from grid.errors import FormatError
from grid.limits import MAX_SHARES, MAX_SLOT_HEAD, READ_CALL_BYTES, READ_CALL_RANGES
from grid.ports import Buffer, LeaseSecrets, Range, ShareNumber, SlotAnswer, SlotSecrets, TestWrite
from grid.wire.packed.share_ranges import (
    MAX_ANSWER_SIZE,
    MAX_REQUEST_SIZE,
    pack_pieces,
    pack_ranges,
    parse_answer,
    parse_ranges,
)

_COUNT = struct.Struct(">H")
_HEAD = struct.Struct(">32s32s32sLH")
_RANGE = struct.Struct(">QQ")
_SHARE = struct.Struct(">BLLBQ")
_TEST = struct.Struct(">QQL")
_WRITE = struct.Struct(">QL")
_PASSED = struct.Struct(">B")

MAX_SLOT_WANTS = _COUNT.size + MAX_SHARES + MAX_REQUEST_SIZE
"""Bytes in the longest request of a read."""

MAX_SLOT_ANSWER = _PASSED.size + MAX_ANSWER_SIZE
"""Bytes in the longest answer to a write."""


def pack_slot_wants(share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]) -> bytes:
    """The request for those ranges of those mutable shares (none named: all). ValueError past the limits of the fields."""
    return _COUNT.pack(len(share_numbers)) + bytes(sorted(share_numbers)) + pack_ranges(ranges)


def parse_slot_wants(data: bytes) -> tuple[frozenset[ShareNumber], list[Range]]:
    """Parse the shares and ranges of pack_slot_wants; FormatError."""
    if len(data) < _COUNT.size:
        raise FormatError("a batched read that ends within its head")
    (count,) = _COUNT.unpack_from(data)
    numbers = data[_COUNT.size : _COUNT.size + count]
    if count > MAX_SHARES or len(numbers) != count:
        raise FormatError("a batched read of more shares than there are, or than it names")
    return frozenset(map(ShareNumber, numbers)), parse_ranges(data[_COUNT.size + count :])


def pack_slot_write(
    secrets: SlotSecrets, writes: Mapping[ShareNumber, TestWrite], ranges: Sequence[Range]
) -> tuple[bytes, bytes] | None:
    """The head and the data, which are joined if they are several; None if the packed form cannot hold the write."""
    if not _is_answer_bounded(ranges):
        return None
    lease = secrets.lease
    try:
        head = [_HEAD.pack(secrets.write_enabler, lease.renew, lease.cancel, len(ranges), len(writes))]
        head += [_RANGE.pack(*wanted) for wanted in ranges]
        for number, write in writes.items():
            length = write.new_length
            head.append(_SHARE.pack(number, len(write.tests), len(write.writes), length is not None, length or 0))
            for offset, size, specimen in write.tests:
                head += [_TEST.pack(offset, size, len(specimen)), specimen]
            head += [_WRITE.pack(offset, len(data)) for offset, data in write.writes]
    except struct.error:
        return None
    packed = b"".join(head)
    if len(packed) > MAX_SLOT_HEAD:
        return None
    return packed, b"".join([data for write in writes.values() for _, data in write.writes])


def parse_slot_write(head: bytes, data: bytes) -> tuple[SlotSecrets, dict[ShareNumber, TestWrite], list[Range]]:
    """The write, with its data as views of the message; FormatError if it is malformed or asks for too long an answer."""
    cursor, raw = _Cursor(head), _Cursor(memoryview(data))
    enabler, renew, cancel, range_count, share_count = cursor.record(_HEAD)
    ranges: list[Range] = [cursor.record(_RANGE) for _ in range(range_count)]
    if not _is_answer_bounded(ranges):
        raise FormatError("a packed write that asks for more than an answer may have")
    writes: dict[ShareNumber, TestWrite] = {}
    for _ in range(share_count):
        number, test_count, write_count, has_length, length = cursor.record(_SHARE)
        if number in writes:
            raise FormatError(f"a packed write with share {number} twice")
        tests: list[tuple[int, int, bytes]] = []
        for _ in range(test_count):
            offset, length_tested, size = cursor.record(_TEST)
            tests.append((offset, length_tested, bytes(cursor.take(size))))
        records = [cursor.record(_WRITE) for _ in range(write_count)]
        writes[ShareNumber(number)] = TestWrite(
            tests=tests,
            writes=[(offset, raw.take(size)) for offset, size in records],
            new_length=length if has_length else None,
        )
    if cursor.left or raw.left:
        raise FormatError("a packed write that is longer than its records say")
    secrets = SlotSecrets(write_enabler=enabler, lease=LeaseSecrets(renew=renew, cancel=cancel))
    return secrets, writes, ranges


def pack_slot_answer(answer: SlotAnswer) -> list[Buffer]:
    """The answer in pieces; data is not copied."""
    return [_PASSED.pack(answer.passed), *pack_pieces(answer.data)]


def parse_slot_answer(answer: bytes) -> SlotAnswer:
    """The answer, with its data as views of the message; FormatError."""
    if answer[:1] not in (b"\0", b"\1"):
        raise FormatError("an answer to a write that does not say whether it was done")
    return SlotAnswer(passed=answer[:1] == b"\1", data=parse_answer(memoryview(answer)[1:]))


def _is_answer_bounded(ranges: Sequence[Range]) -> bool:
    """Whether these ranges of all possible shares fit one answer. Once the write is done, the answer cannot be refused."""
    return _fits(ranges, MAX_SHARES)


def is_read_bounded(share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]) -> bool:
    """Whether a read may use the packed form: its data is limited before it is known to fit an answer.

    If no share is named, there are hardly ever as many as possible; room for a quarter of them is enough.
    """
    return _fits(ranges, len(share_numbers) or MAX_SHARES // 4)


def fits_answer(found: Mapping[ShareNumber, Sequence[Buffer]]) -> bool:
    """Whether the packed form can hold what was read."""
    pieces = [piece for some in found.values() for piece in some]
    return sum(map(len, pieces)) <= READ_CALL_BYTES and len(pieces) <= READ_CALL_RANGES


def _fits(ranges: Sequence[Range], share_count: int) -> bool:
    raw = sum(length for _, length in ranges)
    return raw * share_count <= READ_CALL_BYTES and len(ranges) * share_count <= READ_CALL_RANGES


class _Cursor:
    """Reads bytes in order; FormatError if they end too early."""

    def __init__(self, raw: Buffer) -> None:
        self._bytes = raw
        self._position = 0

    @property
    def left(self) -> int:
        return len(self._bytes) - self._position

    def take(self, size: int) -> Buffer:
        if size > self.left:
            raise FormatError("a packed write that ends within its records")
        start, self._position = self._position, self._position + size
        return self._bytes[start : self._position]

    def record(self, form: struct.Struct) -> tuple[Any, ...]:
        return form.unpack(self.take(form.size))
