"""The CBOR bodies of answers, packed by servers, parsed and checked by clients. [spec wire 15] Pure.

All maps are closed and all numbers bounded. Byte strings are views of the message. Anything else is a FormatError.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from email.utils import formatdate, parsedate_to_datetime

from grid.errors import FormatError
from grid.limits import MAX_SHARES, MAX_VERSION_TEXT
from grid.ports import Buffer, ServerVersion, ShareNumber, SlotAnswer
from grid.wire.http.format.bodies import (
    array,
    byte_string,
    closed_map,
    make_share_set,
    parse_share_set,
    share_number,
    uint,
)
from grid.wire.http.format.cbor import pack_cbor, pack_cbor_bytes, parse_cbor

STORAGE_KEY = b"http://allmydata.org/tahoe/protocols/storage/v1"
APPLICATION_KEY = b"application-version"
MAX_IMMUTABLE = b"maximum-immutable-share-size"
MAX_MUTABLE = b"maximum-mutable-share-size"
AVAILABLE = b"available-space"

EXTENSIONS_HEADER = b"Grid-Extensions"
"""Header of the answer to a version request that offers our endpoints, one line per set; 1.20 ignores it."""
EXTENSIONS_VALUE = b"batch-1"
STORE_EXTENSION = b"store-1"
FIND_EXTENSION = b"find-1"
SLOTS_EXTENSION = b"slots-1"
READ_ONLY = b"read-only-1"
WRITABLE = b"writable-1"
"""Values of that header that offer nothing, but say whether the server's operator lets it take new shares. (decision 477)"""

DATE_HEADER = b"Date"
"""Header of the answer to a version request: the server's clock. 1.20 sends it with all its answers."""

_CBOR_SIZE_LIMIT = 2**64 - 1
_DATE_SIZE = 29


def pack_version(version: ServerVersion) -> bytes:
    """Pack a V with exactly its keys, because a 1.20 client rejects others."""
    return pack_cbor_bytes(
        {
            STORAGE_KEY: {
                MAX_IMMUTABLE: min(version.maximum_immutable_share_size, _CBOR_SIZE_LIMIT),
                MAX_MUTABLE: min(version.maximum_mutable_share_size, _CBOR_SIZE_LIMIT),
                AVAILABLE: min(version.available_space, _CBOR_SIZE_LIMIT),
            },
            APPLICATION_KEY: version.application.encode(),
        }
    )


def parse_version(body: Buffer, offers: Collection[bytes] = ()) -> ServerVersion:
    """Parse a V. offers: the extensions in the head of the answer."""
    batched = EXTENSIONS_VALUE in offers
    fields = closed_map(parse_cbor(body), (STORAGE_KEY, APPLICATION_KEY))
    storage = closed_map(fields[STORAGE_KEY], (MAX_IMMUTABLE, MAX_MUTABLE, AVAILABLE))
    application = bytes(byte_string(fields[APPLICATION_KEY])[:MAX_VERSION_TEXT])
    return ServerVersion(
        application=application.decode("utf-8", "replace"),
        maximum_immutable_share_size=uint(storage[MAX_IMMUTABLE]),
        maximum_mutable_share_size=uint(storage[MAX_MUTABLE]),
        available_space=uint(storage[AVAILABLE]),
        batched_reads=batched,
        batched_writes=batched,
        batched_stores=STORE_EXTENSION in offers,
        batched_finds=FIND_EXTENSION in offers,
        batched_slot_reads=SLOTS_EXTENSION in offers,
        is_read_only=True if READ_ONLY in offers else False if WRITABLE in offers else None,
    )


def room_headers(version: ServerVersion) -> tuple[tuple[bytes, bytes], ...]:
    """The header that says whether the server is read-only, if it says it."""
    if version.is_read_only is None:
        return ()
    return ((EXTENSIONS_HEADER, READ_ONLY if version.is_read_only else WRITABLE),)


def pack_date(unix_time: float) -> bytes:
    """A time as the value of a Date header. [RFC 9110 5.6.7]"""
    return formatdate(unix_time, usegmt=True).encode("ascii")


def parse_date(values: Sequence[bytes]) -> float | None:
    """The Unix time of a Date header, in whole seconds; None if there is not exactly one, or no such time."""
    if len(values) != 1 or len(values[0]) != _DATE_SIZE:
        return None
    try:
        found = parsedate_to_datetime(values[0].decode("ascii")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    # The library also takes older forms, and guesses at what is missing.
    return found if pack_date(found) == values[0] else None


def pack_allocation(already: Collection[int], allocated: Collection[int]) -> bytes:
    """Pack an AR: the shares that existed, and those allocated now."""
    return pack_cbor_bytes({"already-have": make_share_set(already), "allocated": make_share_set(allocated)})


def parse_allocation(body: Buffer) -> tuple[frozenset[ShareNumber], frozenset[ShareNumber]]:
    """Parse an AR: the shares that existed, and those allocated now."""
    fields = closed_map(parse_cbor(body), ("already-have", "allocated"))
    return parse_share_set(fields["already-have"]), parse_share_set(fields["allocated"])


def pack_required(gaps: Iterable[tuple[int, int]]) -> bytes:
    """Pack a W: (begin, end) of each gap."""
    return pack_cbor_bytes({"required": [{"begin": begin, "end": end} for begin, end in gaps]})


def parse_required(body: Buffer) -> list[tuple[int, int]]:
    """Parse a W: (begin, end) of each gap."""
    items = array(closed_map(parse_cbor(body), ("required",))["required"])
    gaps = [closed_map(item, ("begin", "end")) for item in items]
    return [(uint(gap["begin"]), uint(gap["end"])) for gap in gaps]


def pack_numbers(numbers: Collection[int]) -> bytes:
    """Pack a set of share numbers."""
    return pack_cbor_bytes(make_share_set(numbers))


def parse_numbers(body: Buffer) -> frozenset[ShareNumber]:
    """Parse a set of share numbers."""
    return parse_share_set(parse_cbor(body))


def pack_slot_answer(answer: SlotAnswer) -> list[Buffer]:
    """An MR in pieces; data is not copied."""
    data: Mapping[int, Sequence[Buffer]] = {int(number): list(pieces) for number, pieces in answer.data.items()}
    return pack_cbor({"success": answer.passed, "data": data})


def parse_slot_answer(body: Buffer) -> SlotAnswer:
    """Parse an MR; the data are views of the body."""
    fields = closed_map(parse_cbor(body), ("success", "data"))
    passed, data = fields["success"], fields["data"]
    if not isinstance(passed, bool) or not isinstance(data, dict) or len(data) > MAX_SHARES:
        raise FormatError("an answer to a mutable write that does not say how it went")
    return SlotAnswer(
        passed=passed,
        data={share_number(number): [byte_string(piece) for piece in array(pieces)] for number, pieces in data.items()},
    )
