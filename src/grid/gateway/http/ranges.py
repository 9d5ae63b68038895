"""The Range header of a request for a file. Pure. [spec webapi 4.3]"""

from __future__ import annotations

import re

from attrs import frozen

from grid.errors import GridError

_SPEC = re.compile(r"([0-9]*)[ \t]*-[ \t]*([0-9]*)")
_MOST_DIGITS = 19


class RangeBeyondEndError(GridError):
    """The range begins at or behind the end of the file."""


@frozen
class ByteRange:
    """Bytes start .. stop of a file; at least one."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        """Bytes in it."""
        return self.stop - self.start

    def content_range(self, size: int) -> str:
        """The Content-Range header's value, of a file of this size."""
        return f"bytes {self.start}-{self.stop - 1}/{size}"


def parse_range(header: str | None, size: int) -> ByteRange | None:
    """What is asked for of a file of `size` bytes; None for all of it: no header, or none that has a meaning.

    Of several ranges the first is meant. RangeBeyondEndError.
    """
    if header is None:
        return None
    unit, equals, rest = header.partition("=")
    if not equals or unit.strip().lower() != "bytes":
        return None
    specs = [_parse_spec(text.strip()) for text in rest.split(",")]
    if None in specs:
        return None
    first = specs[0]
    assert first is not None
    return _resolve(*first, size)


def _parse_spec(text: str) -> tuple[int | None, int | None] | None:
    """First and last byte as they are written; None if they have no meaning."""
    match = _SPEC.fullmatch(text)
    if match is None or text == "-":
        return None
    first, last = (_number(part) for part in match.groups())
    if first is None and not last:
        return None
    if first is not None and last is not None and last < first:
        return None
    return first, last


def _number(digits: str) -> int | None:
    """No file has a byte whose number has more than _MOST_DIGITS digits."""
    if not digits:
        return None
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS


def _resolve(first: int | None, last: int | None, size: int) -> ByteRange | None:
    if first is None:
        assert last is not None
        return ByteRange(max(0, size - last), size) if size else None
    if first >= size:
        raise RangeBeyondEndError(f"the range starts at byte {first}, and the file has {size} bytes")
    return ByteRange(first, size if last is None else min(last + 1, size))
