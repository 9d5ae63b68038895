"""The bodies of the batched endpoints, an extension of this project's programs. Pure.

Requests are the records of grid.wire.packed.share_ranges. An answer is a stream of frames, so that neither side must know
later lengths in advance. A frame has a kind (u8), a share number (u8) and a number (u32), big-endian.

    SHARE   begins a share's data; number: how many ranges follow, 0 if they were left out or the disk does not give them
    DATA    number bytes follow, and then more of the same range
    LAST    number bytes follow, the end of the range
    END     the answer is whole

A share that is not held has no frames. Ranges come in the order of the request.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum

from grid.errors import FormatError
from grid.limits import READ_CALL_RANGES
from grid.ports import Buffer, Range, ShareNumber, ShareWrite
from grid.wire.packed.share_ranges import RECORD_SIZE

FRAME = struct.Struct(">BBL")
RECORD = struct.Struct(">BQL")
COUNT = struct.Struct(">H")

MAX_READ_BODY = READ_CALL_RANGES * RECORD_SIZE
MAX_WRITE_RECORDS = READ_CALL_RANGES


class Frame(IntEnum):
    """Kinds of frames."""

    SHARE = 1
    DATA = 2
    LAST = 3
    END = 4


END_FRAME = FRAME.pack(Frame.END, 0, 0)

_FRAMES = {int(frame): frame for frame in Frame}


def pack_answer(answer: Mapping[ShareNumber, Sequence[Buffer]]) -> list[Buffer]:
    """A whole answer in pieces; data is not copied."""
    pieces: list[Buffer] = []
    for number, data in answer.items():
        pieces.append(FRAME.pack(Frame.SHARE, number, len(data)))
        for piece in data:
            pieces += (FRAME.pack(Frame.LAST, number, len(piece)), piece)
    pieces.append(END_FRAME)
    return pieces


class AnswerParser:
    """Parses an answer as it arrives. ranges: those requested, per share or (for find) of every share."""

    def __init__(self, wants: Mapping[ShareNumber, Sequence[Range]] | None, ranges: Sequence[Range] = ()) -> None:
        """If `wants` is None, any share may come, each with `ranges`; its data may be left out."""
        self._wants = wants
        self._ranges = ranges
        self._found: dict[ShareNumber, list[Buffer]] = {}
        self._head = b""
        self._kind = Frame.LAST
        self._remaining = 0
        self._range_room = 0
        self._open: list[Buffer] = []
        self._share = ShareNumber(0)
        self._expected: Sequence[Range] = ()
        self._done = False

    def feed(self, data: Buffer) -> None:
        """Take received data; the buffer is kept until its range is complete. FormatError."""
        view = memoryview(data)
        position, size = 0, len(view)
        while position < size:
            if self._done:
                raise FormatError("a batched answer with bytes after its end")
            if self._remaining:
                end = min(size, position + self._remaining)
                self._open.append(view[position:end])
                self._remaining -= end - position
                position = end
                if not self._remaining and self._kind is Frame.LAST:
                    self._close_range()
                continue
            needed = FRAME.size - len(self._head)
            self._head += view[position : position + needed]
            position = min(size, position + needed)
            if len(self._head) == FRAME.size:
                self._take_head()

    def finish(self) -> dict[ShareNumber, list[Buffer]]:
        """The answer; FormatError if it is incomplete."""
        if not self._done:
            raise FormatError("a batched answer that ends too early")
        return self._found

    def _take_head(self) -> None:
        code, share, number = FRAME.unpack(self._head)
        self._head = b""
        match _FRAMES.get(code):
            case Frame.LAST | Frame.DATA as kind:
                self._begin_data(kind, share, number)
            case Frame.SHARE:
                self._begin_share(ShareNumber(share), number)
            case Frame.END:
                self._require_share_ended()
                self._done = True
            case _:
                raise FormatError("a batched answer with a frame of an unknown kind")

    def _begin_share(self, share: ShareNumber, count: int) -> None:
        self._require_share_ended()
        asked = self._ranges if self._wants is None else self._wants.get(share)
        if asked is None or share in self._found:
            raise FormatError("a batched answer about a share that was not asked for, or twice")
        if count not in (0, len(asked)):
            raise FormatError("a batched answer with more or fewer ranges than were asked for")
        self._share, self._found[share] = share, []
        self._expected = asked if count else ()
        self._range_room = self._expected[0][1] if count else 0

    def _begin_data(self, kind: Frame, share: int, size: int) -> None:
        if not self._found or share != self._share or len(self._found[self._share]) == len(self._expected):
            raise FormatError("a batched answer with data that belongs to no range")
        if size > self._range_room:
            raise FormatError("a batched answer with more bytes than were asked for")
        if not size and kind is Frame.DATA:
            raise FormatError("a batched answer with a frame that no share needs")
        self._range_room -= size
        self._kind, self._remaining = kind, size
        if not size:
            self._close_range()

    def _close_range(self) -> None:
        pieces, self._open = self._open, []
        data = self._found[self._share]
        data.append(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if len(data) < len(self._expected):
            self._range_room = self._expected[len(data)][1]

    def _require_share_ended(self) -> None:
        if self._open or (self._found and len(self._found[self._share]) != len(self._expected)):
            raise FormatError("a batched answer that ends within a share")


def pack_write(writes: Sequence[ShareWrite]) -> tuple[list[Buffer], int]:
    """The request in pieces, with its length; data is not copied."""
    head = COUNT.pack(len(writes)) + b"".join(
        RECORD.pack(write.share_number, write.offset, write.size) for write in writes
    )
    pieces: list[Buffer] = [head, *(piece for write in writes for piece in write.pieces)]
    return pieces, len(head) + sum(write.size for write in writes)


def parse_write_records(data: bytes) -> list[tuple[ShareNumber, int, int]]:
    """(share, offset, length) of each write, in the order of the data that follows; FormatError."""
    if len(data) % RECORD.size:
        raise FormatError("a batched write that ends within its head")
    return [(ShareNumber(share), offset, length) for share, offset, length in RECORD.iter_unpack(data)]
