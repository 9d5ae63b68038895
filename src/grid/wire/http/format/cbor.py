"""CBOR values, parsed and packed without copying long byte strings. [RFC 8949] Pure.

Owns the subset that the storage protocol uses: integers, byte and text strings, arrays, maps,
tags, booleans and null, in any valid encoding. Floats, other simple values and duplicate map keys are refused,
because no schema has them. Nothing is allocated for a length that exceeds the message, and nesting is limited.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from grid.errors import FormatError
from grid.limits import MAX_CBOR_ITEMS
from grid.ports import Buffer
from grid.values import frozen

MAX_DEPTH = 8
SET_TAG = 258
"""Marks an array as a set. [spec wire 15]"""

_U16, _U32, _U64 = struct.Struct(">H"), struct.Struct(">L"), struct.Struct(">Q")
_WIDTHS = {25: _U16, 26: _U32, 27: _U64}
_INDEFINITE = -1
_BREAK = 0xFF
_PAGE = 4096
_SHORT = 20

Value = Any
"""int, str, memoryview (a byte string), list, dict, Tagged, bool or None; dict keys are int, str or bytes."""


@frozen
class Tagged:
    """A value with a tag, whose meaning the schema defines."""

    tag: int
    value: Value


@frozen
class Packed:
    """A value that is packed already."""

    data: bytes


def parse_cbor(data: Buffer) -> Value:
    """The message's one value, whose byte strings are views of the message. FormatError if it is not exactly one value."""
    parser = _Parser(data)
    try:
        value = parser.parse(0)
    except (IndexError, struct.error):
        raise FormatError("a CBOR message that ends too early") from None
    if parser.position != len(parser.view):
        raise FormatError("a CBOR message with bytes after its end")
    return value


class _Parser:
    def __init__(self, data: Buffer) -> None:
        self.view = memoryview(data)
        self.position = 0
        self._item_count = 0

    def parse(self, depth: int) -> Value:
        """The value at the current position, which moves past it."""
        self._item_count += 1
        if self._item_count > MAX_CBOR_ITEMS:
            raise FormatError(f"a CBOR message of more than {MAX_CBOR_ITEMS} items")
        initial = self.view[self.position]
        major, low = initial >> 5, initial & 31
        if major == 7:
            return self._simple(low)
        number = self._argument(low)
        if number == _INDEFINITE and major not in (2, 3, 4, 5):
            raise FormatError("a CBOR integer or tag of no definite value")
        if depth > MAX_DEPTH:
            raise FormatError("a CBOR message nested too deeply")
        match major:
            case 0:
                return number
            case 1:
                return -1 - number
            case 2:
                return self._bytes(number, major)
            case 3:
                return self._text(number)
            case 4:
                return self._array(number, depth)
            case 5:
                return self._map(number, depth)
            case _:
                return Tagged(number, self.parse(depth + 1))

    def _argument(self, low: int) -> int:
        self.position += 1
        if low < 24:
            return low
        if low == 24:
            self.position += 1
            return self.view[self.position - 1]
        if low == 31:
            return _INDEFINITE
        width = _WIDTHS.get(low)
        if width is None:
            raise FormatError("a CBOR item of a reserved kind")
        (number,) = width.unpack_from(self.view, self.position)
        self.position += width.size
        return int(number)

    def _simple(self, low: int) -> bool | None:
        self.position += 1
        if low in (20, 21):
            return low == 21
        if low == 22:
            return None
        raise FormatError("a CBOR float, break or simple value that no schema has")

    def _bytes(self, size: int, major: int) -> memoryview:
        if size == _INDEFINITE:
            pieces = []
            while not self._at_break():
                initial = self.view[self.position]
                if initial >> 5 != major or initial & 31 == 31:
                    raise FormatError("a CBOR string whose chunks are not definite strings of its kind")
                pieces.append(self._bytes(self._argument(initial & 31), major))
            return memoryview(b"".join(pieces))
        end = self.position + size
        if end > len(self.view):
            raise FormatError("a CBOR string longer than its message")
        raw = self.view[self.position : end]
        self.position = end
        return raw

    def _text(self, size: int) -> str:
        try:
            return str(self._bytes(size, 3), "utf-8")
        except UnicodeDecodeError:
            raise FormatError("a CBOR text that is not UTF-8") from None

    def _array(self, count: int, depth: int) -> list[Value]:
        if count == _INDEFINITE:
            items = []
            while not self._at_break():
                items.append(self.parse(depth + 1))
            return items
        self._require_room(count)
        return [self.parse(depth + 1) for _ in range(count)]

    def _map(self, count: int, depth: int) -> dict[Any, Value]:
        items: dict[Any, Value] = {}
        if count != _INDEFINITE:
            self._require_room(2 * count)
        remaining = count
        while remaining and not (count == _INDEFINITE and self._at_break()):
            remaining -= 1
            key = self.parse(depth + 1)
            if isinstance(key, memoryview):
                key = bytes(key)
            if isinstance(key, bool) or not isinstance(key, int | str | bytes):
                raise FormatError("a CBOR map with a key that no schema has")
            if key in items:
                raise FormatError("a CBOR map with a key twice")
            items[key] = self.parse(depth + 1)
        return items

    def _at_break(self) -> bool:
        if self.view[self.position] != _BREAK:
            return False
        self.position += 1
        return True

    def _require_room(self, count: int) -> None:
        if count > len(self.view) - self.position:
            raise FormatError("a CBOR container longer than its message")


def pack_cbor(value: Value) -> list[Buffer]:
    """The message in pieces: byte strings of a page and more uncopied, all that lies between them in one piece."""
    pieces: list[Buffer] = []
    _pack(value, pieces)
    return _merged(pieces)


def pack_cbor_bytes(value: Value) -> bytes:
    """The joined message; for small ones."""
    pieces: list[Buffer] = []
    _pack(value, pieces)
    return b"".join(pieces)


def _merged(pieces: Sequence[Buffer]) -> list[Buffer]:
    merged: list[Buffer] = []
    begin = 0
    for index, piece in enumerate(pieces):
        if len(piece) >= _PAGE:
            if begin < index:
                merged.append(b"".join(pieces[begin:index]))
            merged.append(piece)
            begin = index + 1
    if begin < len(pieces):
        merged.append(b"".join(pieces[begin:]))
    return merged


def _pack(value: Value, pieces: list[Buffer]) -> None:
    if value is None:
        pieces.append(b"\xf6")
    elif isinstance(value, bool):
        pieces.append(b"\xf5" if value else b"\xf4")
    elif isinstance(value, int):
        pieces.append(_head(0, value) if value >= 0 else _head(1, -1 - value))
    elif isinstance(value, str):
        pieces.append(_short_text(value) if len(value) <= _SHORT else _text(value))
    elif isinstance(value, bytes | bytearray | memoryview):
        pieces += (_head(2, len(value)), value)
    elif isinstance(value, Packed):
        pieces.append(value.data)
    elif isinstance(value, Tagged):
        pieces.append(_head(6, value.tag))
        _pack(value.value, pieces)
    elif isinstance(value, Mapping):
        pieces.append(_head(5, len(value)))
        for key, item in value.items():
            _pack(key, pieces)
            _pack(item, pieces)
    elif isinstance(value, Sequence):
        pieces.append(_head(4, len(value)))
        for item in value:
            _pack(item, pieces)
    else:
        raise TypeError(f"no CBOR for {type(value).__name__}")


def _text(value: str) -> bytes:
    raw = value.encode()
    return _head(3, len(raw)) + raw


@lru_cache(maxsize=64)
def _short_text(value: str) -> bytes:
    """The keys of the protocol's maps are packed again and again."""
    return _text(value)


def _head(major: int, number: int) -> bytes:
    kind = major << 5
    if number < 24:
        return bytes((kind | number,))
    if number < 256:
        return bytes((kind | 24, number))
    if number < 65536:
        return bytes((kind | 25,)) + _U16.pack(number)
    if number < 2**32:
        return bytes((kind | 26,)) + _U32.pack(number)
    if number < 2**64:
        return bytes((kind | 27,)) + _U64.pack(number)
    raise ValueError("a number that CBOR's integers cannot hold")
