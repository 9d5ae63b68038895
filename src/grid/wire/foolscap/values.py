"""The values that cross the wire: checked when received, and converted to the exact types that 1.20 requires when sent. Pure.

Container types are strict there: a list is not a tuple, a set not a frozenset, bytes not a str. [spec wire 3, 4]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grid.errors import FormatError
from grid.limits import (
    FIND_CALL_FILES,
    MAX_SHARES,
    MAX_SLOT_SIZE,
    MAX_SLOT_WRITE,
    MAX_VERSION_TEXT,
    READ_CALL_BYTES,
    READ_CALL_RANGES,
    STORE_CALL_BYTES,
    STORE_CALL_SHARES,
    WRITE_CALL_BYTES,
)
from grid.ports import Buffer, Range, ServerVersion, ShareNumber, TestWrite

STORAGE_KEY = b"http://allmydata.org/tahoe/protocols/storage/v1"
APPLICATION_KEY = b"application-version"
BATCH_KEY = b"grid-batched-v1"
"""The version dictionary's key that offers our extensions; its value holds their limits."""
READ_ONLY = b"read-only"
"""The key of that value that says whether the server's operator lets it take no new shares: 1 or 0. (decision 477)"""

ShareData = Mapping[ShareNumber, Sequence[Buffer]]


def share_number(number: int) -> ShareNumber:
    """The number as a share number; FormatError if it is out of range."""
    if not 0 <= number < MAX_SHARES:
        raise FormatError(f"share numbers are 0 to {MAX_SHARES - 1}")
    return ShareNumber(number)


def natural(number: int, maximum: int = 2**64 - 1) -> int:
    """The number; FormatError if it is negative or above the maximum."""
    if not 0 <= number <= maximum:
        raise FormatError(f"an offset, length or size outside of 0 to {maximum}")
    return number


def check_ranges(ranges: Iterable[Range]) -> list[Range]:
    """The ranges; FormatError if one is negative."""
    return [(natural(offset), natural(length)) for offset, length in ranges]


def parse_test_write(
    tests: list[tuple[int, int, bytes, bytes]], writes: list[tuple[int, bytes]], new_length: int | None
) -> TestWrite:
    """Parse the test-and-write vector of one share; FormatError for an operator other than `eq`. [spec wire 4]"""
    if any(operator != b"eq" for _, _, operator, _ in tests):
        raise FormatError("the only test operator is eq")
    return TestWrite(
        tests=[(natural(offset), natural(length), specimen) for offset, length, _, specimen in tests],
        writes=[(natural(offset), data) for offset, data in writes],
        new_length=None if new_length is None else natural(new_length),
    )


def within_limits(found: ShareData) -> dict[ShareNumber, list[Buffer]]:
    """The answer, without the data of those shares that would make it longer than a reader accepts."""
    answer_size = range_count = 0
    kept: dict[ShareNumber, list[Buffer]] = {}
    for number, data in found.items():
        answer_size += sum(map(len, data))
        range_count += len(data)
        fits = answer_size <= READ_CALL_BYTES and range_count <= READ_CALL_RANGES
        kept[number] = list(data) if fits else []
    return kept


def pack_shares(data: ShareData) -> dict[int, list[bytes]]:
    """Data per share, in the form that Foolscap sends."""
    return {number: [as_bytes([piece]) for piece in pieces] for number, pieces in data.items()}


def as_bytes(pieces: Sequence[Buffer]) -> bytes:
    """The pieces as one byte string; a single one is not copied."""
    if len(pieces) == 1 and isinstance(pieces[0], bytes):
        return pieces[0]
    return b"".join(pieces)


def pack_version(version: ServerVersion) -> dict[bytes, object]:
    """The version dictionary, with all inner keys of 1.20 and the limits of the extensions. [spec storage-server 7]"""
    return {
        STORAGE_KEY: {
            b"maximum-immutable-share-size": version.maximum_immutable_share_size,
            b"maximum-mutable-share-size": version.maximum_mutable_share_size,
            b"available-space": version.available_space,
            b"tolerates-immutable-read-overrun": version.tolerates_read_overrun,
            b"delete-mutable-shares-with-zero-length-writev": True,
            b"fills-holes-with-zero-bytes": True,
            b"prevents-read-past-end-of-share-data": True,
        },
        APPLICATION_KEY: version.application.encode(),
        BATCH_KEY: {
            b"read-bytes": READ_CALL_BYTES,
            b"read-ranges": READ_CALL_RANGES,
            b"write-bytes": WRITE_CALL_BYTES,
            b"store-bytes": STORE_CALL_BYTES,
            b"store-shares": STORE_CALL_SHARES,
            b"find-files": FIND_CALL_FILES,
            b"slot-bytes": MAX_SLOT_WRITE,
            **({} if version.is_read_only is None else {READ_ONLY: int(version.is_read_only)}),
        },
    }


def parse_version(version: object) -> ServerVersion:
    """Parse a version dictionary. Missing keys mean missing abilities; FormatError if it is malformed."""
    if not isinstance(version, dict):
        raise FormatError("a version that is not a dictionary")
    storage = version.get(STORAGE_KEY)
    if not isinstance(storage, dict):
        raise FormatError("a version without the storage protocol's key")
    application = version.get(APPLICATION_KEY, b"")
    if not isinstance(application, bytes):
        raise FormatError("a version whose application is not a byte string")
    batched = version.get(BATCH_KEY)
    offers = batched if isinstance(batched, dict) else {}
    room = _size(storage, b"maximum-immutable-share-size", 0)
    return ServerVersion(
        application=application[:MAX_VERSION_TEXT].decode("utf-8", "replace"),
        maximum_immutable_share_size=room,
        maximum_mutable_share_size=_size(storage, b"maximum-mutable-share-size", MAX_SLOT_SIZE),
        available_space=_size(storage, b"available-space", room),
        tolerates_read_overrun=storage.get(b"tolerates-immutable-read-overrun") is True,
        batched_reads=(
            _size(offers, b"read-bytes", 0) >= READ_CALL_BYTES and _size(offers, b"read-ranges", 0) >= READ_CALL_RANGES
        ),
        batched_writes=_size(offers, b"write-bytes", 0) >= WRITE_CALL_BYTES,
        batched_stores=(
            _size(offers, b"store-bytes", 0) >= STORE_CALL_BYTES
            and _size(offers, b"store-shares", 0) >= STORE_CALL_SHARES
        ),
        batched_finds=_size(offers, b"find-files", 0) >= FIND_CALL_FILES,
        packed_slots=_size(offers, b"slot-bytes", 0) >= MAX_SLOT_WRITE,
        is_read_only=bool(_size(offers, READ_ONLY, 0)) if READ_ONLY in offers else None,
    )


def _size(sizes: Mapping[object, object], key: bytes, default: int) -> int:
    value = sizes.get(key, default)
    if not isinstance(value, int) or not 0 <= value <= 2**64:
        raise FormatError(f"a version whose {key.decode()} is not a size")
    return int(value)
