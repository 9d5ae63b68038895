"""The table of a sequence: parses and packs it. Pure. [spec extents 3]

A malformed table is refused as a whole: parsing raises only FormatError, and accepts only immutable files that are no sequences.

Cost: a parsed table keeps its bytes and two numbers per line; a part is parsed again at each use.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from grid.caps import ChkCap, KnownCap, LitCap, SliceCap, UnknownCap, parse_cap, require_usable
from grid.errors import CapError, FormatError
from grid.limits import MAX_FILE_SIZE, MAX_SEQUENCE_LINE, MAX_SEQUENCE_PARTS, MAX_SEQUENCE_TABLE_SIZE
from grid.plural import counted
from grid.values import field, frozen

HEAD = b"grid-sequence-1\n"

LONGEST_LITERAL = 55
"""Most bytes of a literal file that a table may contain."""

PartCap = LitCap | ChkCap | SliceCap
"""The files that a table may contain."""

_LINE = re.compile(rb"(URI:[!-~]+) (0|[1-9][0-9]{0,18}) ([1-9][0-9]{0,18})")


@frozen(kw_only=True)
class Part:
    """Bytes offset .. offset + length of an immutable file."""

    cap: PartCap = field(repr=False)
    offset: int
    length: int

    @classmethod
    def whole(cls, cap: PartCap) -> Part:
        """A whole file."""
        return cls(cap=cap, offset=0, length=cap.size)


class Table(Sequence[Part]):
    """The parts of a sequence, in order."""

    def __init__(self, data: bytes, lines: array[int], starts: array[int], size: int) -> None:
        """lines: the offset of each line. starts: the offset of each part in the file. Both from `parse_table`."""
        self._data = data
        self._lines = lines
        self._starts = starts
        self.size = size

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index: int) -> Part:  # type: ignore[override]
        start = self._lines[index]
        part, _ = _parse_line(self._data, start, index)
        return part

    def between(self, start: int, stop: int) -> Iterator[Part]:
        """The parts to read for bytes start .. stop of the file, 0 <= start < stop <= size."""
        index = bisect_right(self._starts, start) - 1
        position = start
        while position < stop:
            part = self[index]
            skipped = position - self._starts[index]
            length = min(part.length - skipped, stop - position)
            yield Part(cap=part.cap, offset=part.offset + skipped, length=length)
            position += length
            index += 1

    def files(self) -> set[PartCap]:
        """The distinct files in the table."""
        return {part.cap for part in self}


def parse_table(data: bytes, size: int) -> Table:
    """Parse the table of a sequence of `size` bytes; FormatError."""
    if len(data) > MAX_SEQUENCE_TABLE_SIZE:
        raise FormatError(f"the table of a sequence has {len(data)} bytes, more than the limit")
    if not data.startswith(HEAD):
        raise FormatError("this is not the table of a sequence, or one of a newer version")
    lines, starts = array("Q"), array("Q")
    offset, total = len(HEAD), 0
    while offset < len(data):
        if len(lines) == MAX_SEQUENCE_PARTS:
            raise FormatError(f"the table of a sequence has more than {MAX_SEQUENCE_PARTS} parts")
        part, end = _parse_line(data, offset, len(lines))
        lines.append(offset)
        starts.append(total)
        total += part.length
        if total > MAX_FILE_SIZE:
            raise FormatError("the parts of a sequence are longer than any file")
        offset = end
    if total != size or not total:
        raise FormatError(
            f"the parts of a sequence have {counted(total, 'byte')}, but its capability says {counted(size, 'byte')}"
        )
    return Table(data, lines, starts, total)


def pack_table(parts: Sequence[Part]) -> bytes:
    """Pack a table; FormatError for parts that no table may contain."""
    lines = [HEAD]
    for part in parts:
        text = part.cap.to_string().removeprefix("imm.").encode()
        lines.append(b"%b %d %d\n" % (text, part.offset, part.length))
    data = b"".join(lines)
    parse_table(data, sum(part.length for part in parts))
    return data


def _parse_line(data: bytes, start: int, index: int) -> tuple[Part, int]:
    """The part in the line that begins there, and the offset of the next line; FormatError."""
    end = data.find(b"\n", start, start + MAX_SEQUENCE_LINE)
    if end < 0:
        raise FormatError(f"part {index} of a sequence: its line is truncated or too long")
    match = _LINE.fullmatch(data, start, end)
    if match is None:
        raise FormatError(f"part {index} of a sequence: its line is malformed")
    text, offset, length = match[1], int(match[2]), int(match[3])
    cap = parse_cap(text, deep_immutable=True)
    try:
        usable: KnownCap = require_usable(cap)
    except CapError as error:
        raise FormatError(f"part {index} of a sequence: {_why(cap, error)}") from None
    if not isinstance(usable, LitCap | ChkCap | SliceCap):
        raise FormatError(f"part {index} of a sequence is a directory, a sequence, or cannot be read")
    if isinstance(usable, LitCap) and usable.size > LONGEST_LITERAL:
        raise FormatError(f"part {index} of a sequence is a literal file of {usable.size} bytes")
    if usable.to_string().removeprefix("imm.").encode() != text:
        raise FormatError(f"part {index} of a sequence: its capability is not in its usual form")
    if offset + length > usable.size:
        raise FormatError(
            f"part {index} of a sequence ends at byte {offset + length} of a file of {counted(usable.size, 'byte')}"
        )
    return Part(cap=usable, offset=offset, length=length), end + 1


def _why(cap: object, error: CapError) -> str:
    if isinstance(cap, UnknownCap) and cap.error is None:
        return "its capability is of an unknown kind"
    return str(error)
