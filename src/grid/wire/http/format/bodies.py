"""The CBOR bodies of requests, packed by clients, parsed and checked by servers. [spec wire 15] Pure.

All maps are closed and all numbers bounded. Byte strings are views of the message. Anything else is a FormatError.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from grid.errors import FormatError
from grid.limits import MAX_ADVISORY_LENGTH, MAX_SHARES
from grid.ports import Buffer, Range, ShareNumber, TestWrite
from grid.wire.http.format.cbor import SET_TAG, Packed, Tagged, pack_cbor, pack_cbor_bytes, parse_cbor

MAX_TESTS = 30
MAX_READS = 30
_UINT_LIMIT = 2**64
_SHORT_SPECIMEN = 256


def closed_map(value: Any, keys: Collection[Any]) -> dict[Any, Any]:
    """The map, which must have exactly those keys."""
    if not isinstance(value, dict) or value.keys() != set(keys):
        raise FormatError("a CBOR map with keys other than its schema's")
    return value


def uint(value: Any) -> int:
    """The value as an unsigned integer."""
    if type(value) is not int or not 0 <= value < _UINT_LIMIT:
        raise FormatError("a CBOR value that is not an unsigned integer")
    return value


def byte_string(value: Any) -> memoryview:
    """The value as a byte string."""
    if not isinstance(value, memoryview):
        raise FormatError("a CBOR value that is not a byte string")
    return value


def array(value: Any, limit: int | None = None) -> list[Any]:
    """The value as an array of at most that many items."""
    if not isinstance(value, list) or (limit is not None and len(value) > limit):
        raise FormatError("a CBOR value that is not an array, or is too long")
    return value


def share_number(value: Any) -> ShareNumber:
    """The value as a share number."""
    number = uint(value)
    if number >= MAX_SHARES:
        raise FormatError(f"share numbers are 0 to {MAX_SHARES - 1}")
    return ShareNumber(number)


def parse_share_set(value: Any) -> frozenset[ShareNumber]:
    """The value as a set of share numbers: the tag is required."""
    if not isinstance(value, Tagged) or value.tag != SET_TAG:
        raise FormatError("a CBOR value that is not tagged as a set")
    return frozenset(share_number(item) for item in array(value.value, MAX_SHARES))


def make_share_set(numbers: Collection[int]) -> Tagged:
    """The set as a CBOR value."""
    return Tagged(SET_TAG, sorted(numbers))


def pack_allocation_request(share_numbers: Collection[int], size: int) -> bytes:
    """Pack an A: the share numbers, and the bytes of each share."""
    return pack_cbor_bytes({"share-numbers": make_share_set(share_numbers), "allocated-size": size})


def parse_allocation_request(body: Buffer) -> tuple[frozenset[ShareNumber], int]:
    """Parse an A: the share numbers, and the bytes of each share."""
    fields = closed_map(parse_cbor(body), ("share-numbers", "allocated-size"))
    return parse_share_set(fields["share-numbers"]), uint(fields["allocated-size"])


def pack_reason(reason: str) -> bytes:
    """Pack a C: the reason of a corruption report, shortened to the limit and never empty."""
    cut = reason.encode("utf-8", "backslashreplace")[: MAX_ADVISORY_LENGTH - 8].decode("utf-8", "ignore")
    return pack_cbor_bytes({"reason": cut or "no reason given"})


def parse_reason(body: Buffer) -> str:
    """Parse a C: the reason of a corruption report."""
    reason = closed_map(parse_cbor(body), ("reason",))["reason"]
    if not isinstance(reason, str) or not 1 <= len(reason.encode()) <= MAX_ADVISORY_LENGTH:
        raise FormatError("a corruption report whose reason is not text, is empty, or is too long")
    return reason


def pack_slot_request(writes: Mapping[ShareNumber, TestWrite], ranges: Sequence[Range]) -> list[Buffer]:
    """An M in pieces; long data to write is not copied."""
    return pack_cbor(
        {
            "test-write-vectors": {int(number): _made_test_write(write) for number, write in writes.items()},
            "read-vector": [{"offset": offset, "size": length} for offset, length in ranges],
        }
    )


def _made_test_write(write: TestWrite) -> dict[str, Any] | Packed:
    if not write.writes and all(len(specimen) <= _SHORT_SPECIMEN for _, _, specimen in write.tests):
        tests = tuple((offset, length, bytes(specimen)) for offset, length, specimen in write.tests)
        return _packed_tests(tests, write.new_length)
    return {
        "test": _made_tests(write.tests),
        "write": [{"offset": offset, "data": data} for offset, data in write.writes],
        "new-length": write.new_length,
    }


@lru_cache(maxsize=64)
def _packed_tests(tests: tuple[tuple[int, int, bytes], ...], new_length: int | None) -> Packed:
    """A change to a file tests the same of many shares, on every server."""
    return Packed(pack_cbor_bytes({"test": _made_tests(tests), "write": [], "new-length": new_length}))


def _made_tests(tests: Sequence[tuple[int, int, bytes]]) -> list[dict[str, Any]]:
    return [{"offset": offset, "size": length, "specimen": specimen} for offset, length, specimen in tests]


def parse_slot_request(body: Buffer) -> tuple[dict[ShareNumber, TestWrite], list[Range]]:
    """Parse an M: what to test and write per share, and what to read from every share."""
    fields = closed_map(parse_cbor(body), ("test-write-vectors", "read-vector"))
    vectors = fields["test-write-vectors"]
    if not isinstance(vectors, dict) or len(vectors) > MAX_SHARES:
        raise FormatError("test-write vectors that are not a map, or are too large")
    writes = {share_number(number): _parse_test_write(vector) for number, vector in vectors.items()}
    return writes, [_parse_range(item) for item in array(fields["read-vector"], MAX_READS)]


def _parse_test_write(value: Any) -> TestWrite:
    fields = closed_map(value, ("test", "write", "new-length"))
    new_length = fields["new-length"]
    return TestWrite(
        tests=[_parse_test(item) for item in array(fields["test"], MAX_TESTS)],
        writes=[_parse_write(item) for item in array(fields["write"])],
        new_length=None if new_length is None else uint(new_length),
    )


def _parse_test(value: Any) -> tuple[int, int, bytes]:
    fields = closed_map(value, ("offset", "size", "specimen"))
    return uint(fields["offset"]), uint(fields["size"]), bytes(byte_string(fields["specimen"]))


def _parse_write(value: Any) -> tuple[int, Buffer]:
    fields = closed_map(value, ("offset", "data"))
    return uint(fields["offset"]), byte_string(fields["data"])


def _parse_range(value: Any) -> Range:
    fields = closed_map(value, ("offset", "size"))
    return uint(fields["offset"]), uint(fields["size"])
