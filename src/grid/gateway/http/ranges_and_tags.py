"""Range and If-None-Match: which part of a file a client requests, and whether it already has it. Pure.

[spec webapi 4.3, 4.4]
"""

from __future__ import annotations

import re

from grid.caps import ChkCap, ChkVerifyCap, DirectoryCap, KnownCap, SequenceCap, SliceCap
from grid.codec.base32 import encode
from grid.crypto.hashing import tagged_hash
from grid.errors import GridError
from grid.values import frozen

_SPEC = re.compile(r"([0-9]*)[ \t]*-[ \t]*([0-9]*)")
_MOST_DIGITS = 19


class RangeBeyondEndError(GridError):
    """The range begins at or past the end of the file."""


@frozen
class ByteRange:
    """Bytes start .. stop of a file; at least one."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        """Bytes in the range."""
        return self.stop - self.start

    def content_range(self, size: int) -> str:
        """The value of the Content-Range header for a file of this size."""
        return f"bytes {self.start}-{self.stop - 1}/{size}"


def parse_range(header: str | None, size: int) -> ByteRange | None:
    """Return the range requested of a file of `size` bytes; None for all of it, also if the header makes no sense.

    Of several ranges, the first counts. RangeBeyondEndError.
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
    """The first and last byte as written; None if they make no sense."""
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
    """Parse a byte offset. No file has an offset of more than _MOST_DIGITS digits."""
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


TAGGED_VIEWS = frozenset({"", "json", "uri", "readonly-uri"})
"""The values of `t` whose answers have an entity tag."""


_TAG = b"grid_entity_tag_v1"


def entity_tag(cap: KnownCap, view: str, *, by_path: bool) -> str | None:
    """The tag of the answer to `t=view`, unquoted as 1.20 sends it; None if the answer could change.

    by_path: the object was found in a directory, which adds mutable metadata to its JSON.
    """
    body = cap.body if isinstance(cap, DirectoryCap) else cap
    if view not in TAGGED_VIEWS or (by_path and view == "json"):
        return None
    if isinstance(body, SliceCap | SequenceCap):
        # Hash the whole capability, since other objects may share its storage index.
        return f"{encode(tagged_hash(_TAG, body.to_string().encode(), 16))}-{view}"
    if not isinstance(body, ChkCap | ChkVerifyCap):
        return None
    kind = "DIR:" if isinstance(cap, DirectoryCap) else ""
    return f"{kind}{encode(body.storage_index)}-{view}"


def is_held(if_none_match: str | None, tag: str | None) -> bool:
    """Whether the header lists the tag, quoted or not."""
    if if_none_match is None or tag is None:
        return False
    listed = [part.strip() for part in if_none_match.split(",")]
    return "*" in listed or any(_bare(part) == tag for part in listed)


def _bare(tag: str) -> str:
    tag = tag.removeprefix("W/")
    return tag[1:-1] if len(tag) >= 2 and tag.startswith('"') and tag.endswith('"') else tag
