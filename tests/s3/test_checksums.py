"""Checksums of parts that are joined, against those of the whole."""

from __future__ import annotations

import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.s3.checksums import combine, default_algorithms


def slow_crc(data: bytes, polynomial: int, bits: int) -> bytes:
    """A CRC by its definition, bit by bit."""
    mask = (1 << bits) - 1
    value = mask
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
    return (value ^ mask).to_bytes(bits // 8, "big")


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_joined_crcs_are_those_of_the_whole(pieces: list[bytes]) -> None:
    for algorithm, polynomial, bits in (("crc32c", 0x82F63B78, 32), ("crc64nvme", 0x9A6C9329AC4BC9B5, 64)):
        parts = [(slow_crc(piece, polynomial, bits), len(piece)) for piece in pieces]
        assert combine(algorithm, parts) == slow_crc(b"".join(pieces), polynomial, bits)
    parts = [(zlib.crc32(piece).to_bytes(4, "big"), len(piece)) for piece in pieces]
    assert combine("crc32", parts) == zlib.crc32(b"".join(pieces)).to_bytes(4, "big")


def test_the_crcs_of_known_texts_are_those_of_their_definition() -> None:
    assert slow_crc(b"123456789", 0x82F63B78, 32).hex() == "e3069283"
    assert slow_crc(b"123456789", 0x9A6C9329AC4BC9B5, 64).hex() == "ae8b14860a799888"


def test_default_checksum_when_its_library_cannot_be_loaded_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be installed all the same, for another interpreter for example."""
    monkeypatch.setitem(sys.modules, "awscrt.checksums", None)
    default_algorithms.cache_clear()
    try:
        assert default_algorithms() == ()
    finally:
        default_algorithms.cache_clear()
