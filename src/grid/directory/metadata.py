"""The metadata of a link: converts JSON to a value and back, within limits. Pure. [spec directories 4]

It owns the limits. Anybody who can write to a directory chooses its metadata, and sixty megabytes of `[]` in a row
would be two gigabytes of lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import isfinite

from grid.errors import FormatError
from grid.limits import KEPT_METADATA_BYTES, MAX_METADATA_DEPTH, MAX_METADATA_SIZE
from grid.values import define

Metadata = Mapping[str, object]
"""A JSON object."""

_MAYBE_INFINITE = re.compile(rb"[eE]\+?[0-9]{3}|(?<![0-9])[0-9]{300}")
"""Matches every number that Python would read as infinite, and few others."""

_FEW_NUMBERS = 2**10
"""Bytes. In shorter metadata, a check of each number takes less time than a search."""

_PLAIN = (str, int, float, type(None))
_LISTS = (list, tuple)

_VALUE_BYTES = 96
"""Memory that each value in a list or object takes, besides its contents."""


def pack_metadata(metadata: Metadata) -> bytes:
    """Pack as JSON; FormatError if that is impossible, too long or nested too deeply."""
    try:
        packed = _ENCODER.encode(metadata).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError("metadata must be something that JSON can express") from error
    if len(packed) > MAX_METADATA_SIZE:
        raise FormatError(f"metadata has at most {MAX_METADATA_SIZE} bytes as JSON; this has {len(packed)}")
    if _may_be_deep(packed):
        _check_depth(metadata)
    return packed


def parse_metadata(data: bytes) -> dict[str, object]:
    """Parse a JSON object; FormatError.

    NaN and infinities, which 1.20 stores, become null, because a directory's listing must be valid JSON.
    """
    try:
        text = data.decode("utf-8")
        is_safe = len(data) >= _FEW_NUMBERS and _MAYBE_INFINITE.search(data) is None
        value = (_DECODER if is_safe else _CAREFUL_DECODER).decode(text)
    except (ValueError, RecursionError) as error:
        raise FormatError("an entry's metadata is not JSON") from error
    if not isinstance(value, dict):
        raise FormatError("an entry's metadata is not a JSON object")
    if _may_be_deep(data):
        _check_depth(value)
    return value


def seconds_in(value: object) -> float | None:
    """A time in metadata; None if it is something else, or a number that is not a possible time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_LATEST_S < value < _LATEST_S:
        return None
    return float(value)


def nanoseconds_in(value: object) -> int | None:
    """The same for a whole number of nanoseconds."""
    if isinstance(value, bool) or not isinstance(value, int) or seconds_in(value // 10**9) is None:
        return None
    return value


def in_calendar(seconds: float) -> float:
    """The nearest time that can be written as a date: anyone who can change a link chooses what it says."""
    return min(max(seconds, 0.0), _LAST_SECOND)


_LATEST_S = 2.0**40
"""Seconds from 1970 beyond any calendar."""

_LAST_SECOND = 253402300799.0
"""Of the year 9999."""


@define
class MetadataRoom:
    """How much more memory the metadata of one directory may take as objects."""

    left: int = KEPT_METADATA_BYTES

    def read(self, data: bytes) -> Metadata | bytes:
        """The parsed metadata if there is room for it, otherwise its JSON, which is valid; FormatError.

        Metadata that is too long counts as empty, because nobody has parsed it.
        """
        if len(data) > MAX_METADATA_SIZE:
            return {}
        value = parse_metadata(data)
        cost = metadata_memory(data)
        if cost > self.left:
            return data
        self.left -= cost
        return value


def metadata_memory(data: bytes) -> int:
    """Most bytes that the values of this JSON take as objects."""
    # One of these precedes each value. Those inside strings are counted too, which does no harm.
    values = len(data) - len(data.translate(None, b"[{,"))
    return _VALUE_BYTES * values + 4 * len(data)


def _no_number(name: str) -> None:
    """The replacement for NaN and Infinity."""


def _finite(text: str) -> float | None:
    value = float(text)
    return value if isfinite(value) else None


_ENCODER = json.JSONEncoder(allow_nan=False)
_DECODER = json.JSONDecoder(parse_constant=_no_number)
_CAREFUL_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)


def _may_be_deep(data: bytes) -> bool:
    """Whether JSON has enough brackets to be nested too deeply; most has two."""
    return data.count(b"[") + data.count(b"{") > MAX_METADATA_DEPTH


def _check_depth(value: object) -> None:
    level: list[object] = [value]
    for _ in range(MAX_METADATA_DEPTH):
        nested: list[object] = []
        for item in level:
            # Most values are plain, or of JSON's types. Type checks on them would take longer than everything else here.
            if isinstance(item, _PLAIN):
                continue
            if isinstance(item, _LISTS):
                nested.extend(item)
            elif isinstance(item, Mapping):
                nested.extend(item.values())
        if not nested:
            return
        level = nested
    raise FormatError(f"metadata is nested more than {MAX_METADATA_DEPTH} deep")
