"""Digests of contents in transit."""

from __future__ import annotations

import os
from hashlib import sha256
from itertools import pairwise

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from grid.transfer.digest import BLOCK, DIGEST_SIZE, ContentDigest, DigestKey, digest_of_bytes

SECRET = bytes(range(32))
KEY = DigestKey(SECRET)


def mac(index: int, block: bytes) -> bytes:
    return AESGCM(SECRET).encrypt(index.to_bytes(12), b"", block)


def blocks_of(data: bytes) -> list[bytes]:
    return [mac(index, data[begin : begin + BLOCK]) for index, begin in enumerate(range(0, len(data), BLOCK))]


def test_digest_is_of_the_macs_of_all_blocks() -> None:
    data = os.urandom(2 * BLOCK + 5)
    assert digest_of_bytes(KEY, data) == "gmac " + sha256(b"".join(blocks_of(data))).hexdigest()
    assert digest_of_bytes(KEY, b"") == "gmac " + sha256(b"").hexdigest()


def test_blocks_that_arrive_in_any_order_and_again_have_one_digest() -> None:
    digest, data = ContentDigest(KEY), os.urandom(3 * BLOCK + 5)
    for offset in (BLOCK, 0, 2 * BLOCK, 3 * BLOCK, BLOCK):
        for begin in range(offset, min(offset + BLOCK, len(data)), BLOCK // 2):
            digest.add(begin, data[begin : min(begin + BLOCK // 2, offset + BLOCK)])
    assert digest.of_range(0, len(data)) == b"".join(blocks_of(data))
    assert digest.text() == digest_of_bytes(KEY, data) == digest.text()


@given(cuts=st.lists(st.integers(0, 2 * BLOCK + 9), max_size=6), whole=st.booleans())
def test_digest_does_not_depend_on_the_pieces(cuts: list[int], whole: bool) -> None:
    data, digest = bytes(range(251)) * ((2 * BLOCK + 9) // 251 + 1), ContentDigest(KEY)
    data = data[: 2 * BLOCK + 9]
    if whole:  # An attempt that ended in the middle of a block.
        digest.add(0, os.urandom(BLOCK // 2))
    bounds = [0, *sorted(cuts), len(data)]
    for begin, end in pairwise(bounds):
        digest.add(begin, data[begin:end])
    assert digest.text() == digest_of_bytes(KEY, data)


def test_range_of_an_earlier_attempt_counts_as_read() -> None:
    data, earlier, later = os.urandom(3 * BLOCK + 5), ContentDigest(KEY), ContentDigest(KEY)
    earlier.add(0, data[: 2 * BLOCK])
    kept = earlier.of_range(0, 2 * BLOCK)
    later.take(0, kept)
    later.add(2 * BLOCK, data[2 * BLOCK :])
    assert len(kept) == 2 * DIGEST_SIZE and later.text() == digest_of_bytes(KEY, data)


@pytest.mark.parametrize("change", ["byte", "length", "order", "key"])
def test_other_contents_have_another_digest(change: str) -> None:
    data, key = bytes(BLOCK) + bytes([1]) * BLOCK, KEY
    other = bytearray(data)
    if change == "byte":
        other[BLOCK // 2] ^= 1
    elif change == "length":
        other.append(0)
    elif change == "order":
        other = other[BLOCK:] + other[:BLOCK]
    else:
        key = DigestKey(bytes(32))
    assert digest_of_bytes(key, other) != digest_of_bytes(KEY, data)
