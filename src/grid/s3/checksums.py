"""S3's checksums of objects: computed while bytes pass, and compared with the client's. Pure.

CRC32C, CRC64NVME and the XXHashes come from awscrt, which the extra `s3` installs; without it, requests that name one
are refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from grid.ports import Buffer
from grid.s3.faults import S3Fault

ALGORITHMS = {
    "crc32": 4,
    "crc32c": 4,
    "crc64nvme": 8,
    "md5": 16,
    "sha1": 20,
    "sha256": 32,
    "sha512": 64,
    "xxhash128": 16,
    "xxhash3": 8,
    "xxhash64": 8,
}
"""Algorithms by their names in headers, with digest sizes in bytes."""

FULL_OBJECT = frozenset({"crc32", "crc32c", "crc64nvme"})
"""Algorithms that can cover a whole multipart object."""


_POLYNOMIALS = {"crc32": 0xEDB88320, "crc32c": 0x82F63B78, "crc64nvme": 0x9A6C9329AC4BC9B5}
"""The CRCs' polynomials, bit-reversed."""


_XXHASHES = {"xxhash128": "xxhash3_128", "xxhash3": "xxhash3_64", "xxhash64": "xxhash64"}


@cache
def default_algorithms() -> tuple[str, ...]:
    """The checksum of objects for which the client names none: S3's, if its library is installed and can be loaded."""
    try:
        _hasher("crc64nvme")
    except S3Fault:
        return ()
    return ("crc64nvme",)


def named_algorithm(text: str) -> str:
    """Parse the upper-case name of an algorithm; InvalidRequest."""
    name = text.lower()
    if name not in ALGORITHMS:
        named = ", ".join(map(str.upper, ALGORITHMS))
        raise S3Fault(
            "InvalidRequest",
            f"Checksum algorithm provided is unsupported. Please try again with any of the valid types: [{named}]",
        )
    return name


def stated_checksums(fields: Iterable[tuple[str, str]], kind: str = "header") -> dict[str, str]:
    """The checksum in headers or trailers, by algorithm; InvalidRequest for a malformed one, or several.

    kind: of the fields, for the refusal.
    """
    found = named_in(fields)
    require_single(found)
    for algorithm, value in found.items():
        if _size(value) != ALGORITHMS[algorithm]:
            raise S3Fault("InvalidRequest", f"Value for x-amz-checksum-{algorithm} {kind} is invalid.")
    return found


def require_single(named: Collection[str]) -> None:
    """Raise InvalidRequest if a request names more than one checksum."""
    if len(named) > 1:
        raise S3Fault(
            "InvalidRequest",
            "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
        )


def named_in(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The checksums in headers or trailers as they are, by algorithm; InvalidRequest for an unknown algorithm."""
    found = {}
    for name, value in fields:
        algorithm = name.removeprefix("x-amz-checksum-")
        if algorithm == name or algorithm in ("mode", "type", "algorithm"):
            continue
        if algorithm not in ALGORITHMS:
            raise S3Fault("InvalidRequest", "The algorithm type you specified in x-amz-checksum- header is invalid.")
        found[algorithm] = value
    return found


def is_checksum(algorithm: str, value: str) -> bool:
    """Whether a text can be a checksum of that algorithm; that of an object in parts says how many there are."""
    return _size(value.partition("-")[0]) == ALGORITHMS.get(algorithm)


def parse_md5(value: str) -> str:
    """The MD5 of a Content-MD5 header in hexadecimal; InvalidDigest."""
    if _size(value) != 16:
        raise S3Fault("InvalidDigest", details=(("Content-MD5", value),))
    return base64.b64decode(value).hex()


def mismatch(algorithm: str) -> str:
    """What to tell a client whose checksum is wrong."""
    return f"The {algorithm.upper()} you specified did not match the calculated checksum."


def _size(value: str) -> int:
    try:
        return len(base64.b64decode(value, validate=True))
    except (binascii.Error, ValueError):
        return -1


def combine(algorithm: str, parts: Sequence[tuple[bytes, int]]) -> bytes:
    """The CRC of concatenated parts, computed from each part's CRC and size. algorithm: one of FULL_OBJECT.

    A CRC is the remainder of a polynomial. Appending data shifts it, which is a multiplication by a power of x.
    """
    polynomial, size = _POLYNOMIALS[algorithm], ALGORITHMS[algorithm]
    shifts: dict[int, int] = {}
    whole = 0
    for crc, length in parts:
        if length not in shifts:
            shifts[length] = _power(polynomial, 8 * size, 8 * length)
        whole = _product(polynomial, 8 * size, whole, shifts[length]) ^ int.from_bytes(crc, "big")
    return whole.to_bytes(size, "big")


def _product(polynomial: int, bits: int, one: int, other: int) -> int:
    product = 0
    for bit in range(bits - 1, -1, -1):
        if one >> bit & 1:
            product ^= other
        other = other >> 1 ^ (polynomial if other & 1 else 0)
    return product


def _power(polynomial: int, bits: int, exponent: int) -> int:
    """Compute that power of x."""
    power, square = 1 << bits - 1, 1 << bits - 2
    while exponent:
        if exponent & 1:
            power = _product(polynomial, bits, power, square)
        square = _product(polynomial, bits, square, square)
        exponent >>= 1
    return power


class _Crc:
    """A running CRC."""

    def __init__(self, advance: Callable[[Any, int], int], size: int) -> None:
        self._advance = advance
        self._size = size
        self._value = 0

    def update(self, data: Buffer) -> None:
        """Add bytes."""
        self._value = self._advance(data, self._value)

    def digest(self) -> bytes:
        """The CRC of all bytes."""
        return self._value.to_bytes(self._size, "big")


class _XxHash:
    """A running XXHash. awscrt gives its digest once, and reads only bytes that nobody can change."""

    def __init__(self, running: Any) -> None:  # noqa: ANN401
        self._running = running
        self._digest = b""

    def update(self, data: Buffer) -> None:
        """Add bytes."""
        self._running.update(bytes(data))

    def digest(self) -> bytes:
        """The hash of all bytes."""
        self._digest = self._digest or self._running.finalize()
        return self._digest


def _hasher(algorithm: str) -> Any:  # noqa: ANN401
    match algorithm:
        case "md5" | "sha1" | "sha256" | "sha512":
            return hashlib.new(algorithm, usedforsecurity=False)
        case "crc32":
            return _Crc(zlib.crc32, 4)
    try:
        library = import_module("awscrt.checksums")
        if algorithm in _XXHASHES:
            return _XxHash(getattr(library.XXHash, f"new_{_XXHASHES[algorithm]}")())
        return _Crc(getattr(library, algorithm), ALGORITHMS[algorithm])
    except (ImportError, AttributeError):
        raise S3Fault(
            "NotImplemented",
            f"{algorithm.upper()} is not available: the gateway's Grid is installed without its extra s3.",
        ) from None


class Digests:
    """The MD5 of passing bytes, and further checksums. Calls must not overlap; any thread may make them."""

    def __init__(self, algorithms: Iterable[str]) -> None:
        """S3Fault if an algorithm is not installed."""
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._others = {name: _hasher(name) for name in algorithms}

    def update(self, data: Buffer) -> None:
        """Add bytes, in order."""
        self._md5.update(data)
        for other in self._others.values():
            other.update(data)

    @property
    def md5(self) -> str:
        """Of all bytes, in hexadecimal."""
        return self._md5.hexdigest()

    @property
    def checksums(self) -> dict[str, str]:
        """Of all bytes, in base64 and by algorithm."""
        return {name: base64.b64encode(other.digest()).decode() for name, other in self._others.items()}

    def require(self, md5: str | None, stated: Mapping[str, str]) -> None:
        """Raise BadDigest unless the checksums match the stated ones."""
        if md5 is not None and md5 != self.md5:
            calculated = base64.b64encode(bytes.fromhex(self.md5)).decode()
            raise S3Fault("BadDigest", details=(("CalculatedDigest", calculated), ("ExpectedDigest", md5)))
        found = self.checksums
        for name, value in stated.items():
            if found.get(name) != value:
                raise S3Fault("BadDigest", mismatch(name))
