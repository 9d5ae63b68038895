"""The packed form of questions: which shares of several files exist, and what some of their ranges contain.

An extension of this project's servers, the same over both transports. All numbers are big-endian. A message is a
run of entries, one per file: storage index 16 bytes, range count u16, and that many ranges (offset u64, length
u32). The answer has for each file in order: u8 whether the lookup succeeded, a length u32, and that many bytes:
an answer of grid.wire.packed.share_ranges. A server leaves out data if all answers together would exceed one answer's limit.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from grid.errors import FormatError, GridError
from grid.limits import FIND_CALL_FILES, MAX_SHARES, READ_CALL_BYTES, READ_CALL_RANGES
from grid.ports import Buffer, Find, FindsTogether, ShareNumber, StorageIndex, StorageServer
from grid.wire.packed.share_ranges import MAX_ANSWER_SIZE, pack_pieces, parse_answer

_HEAD = struct.Struct(">16sH")
_RANGE = struct.Struct(">QL")
_OUTCOME = struct.Struct(">BL")
_SHARE_OVERHEAD = 3

MAX_FIND_RANGES = 64
"""Most ranges per file: a head, a tail and some blocks."""

MAX_FIND_MESSAGE = FIND_CALL_FILES * (_HEAD.size + MAX_FIND_RANGES * _RANGE.size)
"""Bytes in the longest message."""

MAX_FIND_ANSWER = MAX_ANSWER_SIZE + FIND_CALL_FILES * (_OUTCOME.size + 2 + MAX_SHARES * _SHARE_OVERHEAD)
"""Bytes in the longest answer."""

Found = Mapping[ShareNumber, Sequence[Buffer]]


def pack_finds(finds: Sequence[Find]) -> bytes:
    """Pack the message. ValueError past the limits of the fields."""
    pieces: list[bytes] = []
    for find in finds:
        if len(find.ranges) > MAX_FIND_RANGES:
            raise ValueError(f"more than {MAX_FIND_RANGES} ranges of a file")
        pieces.append(_HEAD.pack(find.storage_index, len(find.ranges)))
        pieces += [_RANGE.pack(offset, length) for offset, length in find.ranges]
    return b"".join(pieces)


def parse_finds(message: Buffer) -> list[Find]:
    """Parse the questions; FormatError past the limits of one call."""
    if len(message) > MAX_FIND_MESSAGE:
        raise FormatError("a message with more questions than one may have")
    finds: list[Find] = []
    position = 0
    try:
        while position < len(message):
            index, count = _HEAD.unpack_from(message, position)
            position += _HEAD.size
            if count > MAX_FIND_RANGES or len(finds) == FIND_CALL_FILES:
                raise FormatError(
                    f"questions about more than {FIND_CALL_FILES} files, or {MAX_FIND_RANGES} ranges of one"
                )
            ranges = [_RANGE.unpack_from(message, position + i * _RANGE.size) for i in range(count)]
            position += count * _RANGE.size
            finds.append(Find(StorageIndex(index), [(offset, length) for offset, length in ranges]))
    except struct.error as error:
        raise FormatError("questions that end within a file's") from error
    return finds


def pack_find_answers(answers: Sequence[Found | None]) -> list[Buffer]:
    """The answer in pieces; data is not copied. None: the lookup of that file failed."""
    pieces: list[Buffer] = []
    for found in answers:
        packed = [] if found is None else pack_pieces(found)
        pieces += (_OUTCOME.pack(found is not None, sum(map(len, packed))), *packed)
    return pieces


def parse_find_answers(answer: Buffer, finds: Sequence[Find]) -> list[Found | None]:
    """The answers to these questions, as views of the message; FormatError if they do not match."""
    view = memoryview(answer)
    answers: list[Found | None] = []
    position = 0
    for find in finds:
        try:
            outcome, length = _OUTCOME.unpack_from(view, position)
        except struct.error as error:
            raise FormatError("an answer about fewer files than were asked about") from error
        position += _OUTCOME.size
        part = view[position : position + length]
        position += length
        if outcome > 1 or len(part) != length or (length and not outcome):
            raise FormatError("an answer to a question that contradicts itself")
        answers.append(_checked(parse_answer(part), find) if outcome else None)
    if position != len(view):
        raise FormatError("an answer about more files than were asked about")
    return answers


def _checked(found: Found, find: Find) -> Found:
    for pieces in found.values():
        if pieces and len(pieces) != len(find.ranges):
            raise FormatError("an answer with ranges other than those asked for")
        for piece, (_, length) in zip(pieces, find.ranges, strict=False):
            if len(piece) > length:
                raise FormatError("an answer with more bytes than were asked for")
    return found


Finder = Callable[[Sequence[Find]], Awaitable[Sequence[Found | None]]]
"""Looks for the shares of several files."""


def finder_of(server: StorageServer) -> Finder:
    """The function that looks up several files on a server: in one step if the server can, otherwise one after the other."""
    return server.find_each if isinstance(server, FindsTogether) else partial(_find_one_by_one, server)


async def _find_one_by_one(server: StorageServer, finds: Sequence[Find]) -> Sequence[Found | None]:
    answers: list[Found | None] = []
    room, ranges_left = READ_CALL_BYTES, READ_CALL_RANGES
    for find in finds:
        try:
            found = dict(await server.find_shares(find.storage_index, find.ranges))
        except GridError:
            answers.append(None)
            continue
        for number, pieces in found.items():
            size = sum(map(len, pieces))
            if size > room or len(pieces) > ranges_left:
                found[number] = []
            else:
                room -= size
                ranges_left -= len(pieces)
        answers.append(found)
    return answers
