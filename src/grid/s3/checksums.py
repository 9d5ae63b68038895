"""S3's checksums of objects: computed while bytes pass, and compared with the client's. Pure.

CRC32C and CRC64NVME come from awscrt, which the extra `s3` installs; without it, requests that name one are refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from grid.ports import Buffer
from grid.s3.faults import S3Fault

ALGORITHMS = {"crc32": 4, "crc32c": 4, "crc64nvme": 8, "sha1": 20, "sha256": 32}
"""Algorithms by their names in headers, with digest sizes in bytes."""

FULL_OBJECT = frozenset({"crc32", "crc32c", "crc64nvme"})
"""Algorithms that can cover a whole multipart object."""


_POLYNOMIALS = {"crc32": 0xEDB88320, "crc32c": 0x82F63B78, "crc64nvme": 0x9A6C9329AC4BC9B5}
"""The CRCs' polynomials, bit-reversed."""


def named_algorithm(text: str) -> str:
    """Parse the upper-case name of an algorithm; InvalidRequest."""
    name = text.lower()
    if name not in ALGORITHMS:
        raise S3Fault("InvalidRequest", "This checksum algorithm is not supported.")
    return name


def stated_checksums(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The checksums in headers or trailers, by algorithm; InvalidRequest for a malformed one."""
    found = {}
    for name, value in fields:
        algorithm = name.removeprefix("x-amz-checksum-")
        if algorithm == name or algorithm in ("mode", "type", "algorithm"):
            continue
        if algorithm not in ALGORITHMS:
            raise S3Fault("NotImplemented", "This checksum algorithm is not supported.")
        if _size(value) != ALGORITHMS[algorithm]:
            raise S3Fault("InvalidRequest", f"The value of x-amz-checksum-{algorithm} is malformed.")
        found[algorithm] = value
    return found


def is_checksum(algorithm: str, value: str) -> bool:
    """Whether a text can be a checksum of that algorithm; that of an object in parts says how many there are."""
    return _size(value.partition("-")[0]) == ALGORITHMS.get(algorithm)


def parse_md5(value: str) -> str:
    """The MD5 of a Content-MD5 header in hexadecimal; InvalidDigest."""
    if _size(value) != 16:
        raise S3Fault("InvalidDigest", "The value of Content-MD5 is malformed.")
    return base64.b64decode(value).hex()


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


def _hasher(algorithm: str) -> Any:  # noqa: ANN401
    match algorithm:
        case "sha1" | "sha256":
            return hashlib.new(algorithm, usedforsecurity=False)
        case "crc32":
            return _Crc(zlib.crc32, 4)
    try:
        library = import_module("awscrt.checksums")
    except ImportError:
        raise S3Fault(
            "NotImplemented",
            f"{algorithm.upper()} is not available: the gateway's Grid is installed without its extra s3.",
        ) from None
    return _Crc(getattr(library, algorithm), ALGORITHMS[algorithm])


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
            raise S3Fault("BadDigest", "The body does not match Content-MD5.")
        found = self.checksums
        for name, value in stated.items():
            if found.get(name) != value:
                raise S3Fault("BadDigest", f"The body does not match x-amz-checksum-{name}.")
