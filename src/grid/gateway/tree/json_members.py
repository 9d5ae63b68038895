"""The members of a JSON object, read one by one from bytes. Pure.

The library reads a document in one call, which holds the interpreter: 64 MB of children take it a second. Here no call
sees more than one member, of a size that is bounded before it is read, and nothing is kept of those that were taken.
"""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Iterator

from grid.errors import FormatError

WINDOWS = (2**12, 2**17, 2**20)
"""Bytes in which a name or a value is looked for; one that does not end in the last is too long."""

_SPACE = re.compile(rb"[ \t\r\n]*")
_UTF8 = getincrementaldecoder("utf-8")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def read_members(data: bytes) -> Iterator[tuple[str, object]]:
    """Names with values, as they come; FormatError for what is no JSON object, or has a member longer than any.

    A number of thousands of digits may come in part: this is for members that are lists or objects.
    """
    offset = _expect(data, 0, b"{")
    if data[offset : offset + 1] == b"}":
        _require_end(data, offset + 1)
        return
    while True:
        if data[offset : offset + 1] != b'"':
            raise FormatError("the body is not JSON in UTF-8: a name is missing")
        name, offset = _read(data, offset)
        offset = _expect(data, offset, b":")
        value, offset = _read(data, offset)
        yield str(name), value
        offset = _skip_space(data, offset)
        if data[offset : offset + 1] == b"}":
            _require_end(data, offset + 1)
            return
        offset = _expect(data, offset, b",")


def _read(data: bytes, offset: int) -> tuple[object, int]:
    """The value that begins there, and the offset behind it."""
    for window in WINDOWS:
        try:
            text = _UTF8().decode(data[offset : offset + window])
            value, end = _DECODER.raw_decode(text)
        except (ValueError, RecursionError) as error:
            if offset + window >= len(data):
                raise FormatError("the body is not JSON in UTF-8") from error
            continue
        return value, offset + (end if text.isascii() else len(text[:end].encode("utf-8")))
    raise FormatError(f"the body is not JSON in UTF-8, or one child takes more than {WINDOWS[-1]} bytes of it")


def _expect(data: bytes, offset: int, sign: bytes) -> int:
    """The offset of what follows the sign."""
    offset = _skip_space(data, offset)
    if data[offset : offset + 1] != sign:
        raise FormatError(f"the body is not JSON in UTF-8, or no object: {sign.decode()} is missing")
    return _skip_space(data, offset + 1)


def _require_end(data: bytes, offset: int) -> None:
    if _skip_space(data, offset) != len(data):
        raise FormatError("the body is not JSON in UTF-8: something follows the object")


def _skip_space(data: bytes, offset: int) -> int:
    found = _SPACE.match(data, offset)
    return offset if found is None else found.end()
