"""The packed form of batched reads and writes: one message with many ranges of many shares. Pure.

An extension of this project's servers: a packed message is one byte string, whatever it contains, so that a batch
costs the transport one token instead of one per range, and the length limits everything inside. All numbers
are big-endian. A request is a run of 13-byte records (share u8, offset u64, length u32). An answer is a head
(share count u16, then per share: number u8, range count u16, that many lengths u32), then the data in the same order.
A write is the records, then the data in the same order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise

from grid.errors import FormatError
from grid.limits import MAX_SHARES, READ_CALL_BYTES, READ_CALL_RANGES
from grid.ports import Buffer, Range, ShareNumber, ShareWrite

_RECORD = struct.Struct(">BQL")
_SHARE_COUNT = struct.Struct(">H")
_SHARE_HEAD = struct.Struct(">BH")

RECORD_SIZE = _RECORD.size
MAX_REQUEST_SIZE = READ_CALL_RANGES * RECORD_SIZE
MAX_ANSWER_SIZE = READ_CALL_BYTES + _SHARE_COUNT.size + MAX_SHARES * _SHARE_HEAD.size + 4 * READ_CALL_RANGES
"""Bytes in the longest answer a reader accepts."""

Wants = Mapping[ShareNumber, Sequence[Range]]
Answer = Mapping[ShareNumber, Sequence[Buffer]]


def pack_wants(wants: Wants) -> bytes:
    """The request for those ranges. A share without ranges is left out. ValueError past the limits of the fields."""
    records = [(share, offset, length) for share, ranges in wants.items() for offset, length in ranges]
    return _pack_records(records)


def parse_wants(data: bytes) -> dict[ShareNumber, list[Range]]:
    """The requested ranges, per share and in order; FormatError past the limits of one read call."""
    if len(data) > MAX_REQUEST_SIZE:
        raise FormatError(f"a batched read of more than {READ_CALL_RANGES} ranges")
    wants: dict[ShareNumber, list[Range]] = {}
    total = 0
    for share_number, offset, length in _parse_records(data):
        total += length
        wants.setdefault(ShareNumber(share_number), []).append((offset, length))
    if total > READ_CALL_BYTES:
        raise FormatError(f"a batched read of {total} bytes; at most {READ_CALL_BYTES} may be asked for")
    return wants


def pack_ranges(ranges: Sequence[Range]) -> bytes:
    """The ranges to read from every share, packed as a request for share 0."""
    return pack_wants({ShareNumber(0): ranges})


def parse_ranges(data: bytes) -> list[Range]:
    """Parse the result of pack_ranges; FormatError if a share other than 0 is named."""
    wants = parse_wants(data)
    ranges = wants.pop(ShareNumber(0), [])
    if wants:
        raise FormatError("ranges for every share must name share 0 only")
    return ranges


def pack_answer(answer: Answer) -> bytes:
    """The packed answer, joined. This is the only copy of the data."""
    return b"".join(pack_pieces(answer))


def pack_pieces(answer: Answer) -> list[Buffer]:
    """The packed answer in pieces; data is not copied."""
    head = [_SHARE_COUNT.pack(len(answer))]
    pieces: list[Buffer] = []
    for share_number, data in answer.items():
        head.append(_SHARE_HEAD.pack(share_number, len(data)))
        head.append(struct.pack(f">{len(data)}L", *map(len, data)))
        pieces.extend(data)
    return [b"".join(head), *pieces]


def parse_answer(data: Buffer) -> dict[ShareNumber, list[memoryview]]:
    """The data per share, as views of the message. FormatError if lengths do not add up."""
    shapes: list[tuple[ShareNumber, tuple[int, ...]]] = []
    try:
        (share_count,) = _SHARE_COUNT.unpack_from(data)
        position = _SHARE_COUNT.size
        if share_count > MAX_SHARES:
            raise FormatError(f"a batched answer about {share_count} shares")
        for _ in range(share_count):
            share_number, range_count = _SHARE_HEAD.unpack_from(data, position)
            position += _SHARE_HEAD.size
            shapes.append((ShareNumber(share_number), struct.unpack_from(f">{range_count}L", data, position)))
            position += 4 * range_count
    except struct.error as error:
        raise FormatError("a batched answer that ends within its head") from error
    if position + sum(sum(lengths) for _, lengths in shapes) != len(data):
        raise FormatError("a batched answer whose data is not as long as its head says")
    answer: dict[ShareNumber, list[memoryview]] = {}
    view = memoryview(data)
    for share_number, lengths in shapes:
        if share_number in answer:
            raise FormatError(f"a batched answer with share {share_number} twice")
        ends = list(accumulate(lengths, initial=position))
        answer[share_number] = [view[start:end] for start, end in pairwise(ends)]
        position = ends[-1]
    return answer


def pack_writes(writes: Sequence[ShareWrite]) -> tuple[bytes, bytes]:
    """The records, and all data joined. This is the only copy of the data."""
    records = _pack_records([(write.share_number, write.offset, write.size) for write in writes])
    return records, b"".join([piece for write in writes for piece in write.pieces])


def parse_writes(records: bytes, data: bytes) -> list[ShareWrite]:
    """The writes, with their data as views of the message; FormatError if the lengths do not add up."""
    parsed = list(_parse_records(records))
    if sum(length for _, _, length in parsed) != len(data):
        raise FormatError("a batched write whose data is not as long as its records say")
    writes, position, view = [], 0, memoryview(data)
    for share_number, offset, length in parsed:
        writes.append(ShareWrite(ShareNumber(share_number), offset, [view[position : position + length]]))
        position += length
    return writes


def _pack_records(records: Iterable[tuple[int, int, int]]) -> bytes:
    try:
        return b"".join([_RECORD.pack(*record) for record in records])
    except struct.error as error:
        raise ValueError("a share number, an offset or a length is out of bounds") from error


def _parse_records(data: bytes) -> Iterable[tuple[int, int, int]]:
    if len(data) % RECORD_SIZE:
        raise FormatError("records that end within a record")
    return _RECORD.iter_unpack(data)
