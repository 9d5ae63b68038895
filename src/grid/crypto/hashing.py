"""Tagged hashes: SHA-256 twice over a netstring-framed tag and the data. [spec caps 2]

Owns the framing, which keeps hashes of different purposes apart. Never caches a tag: some are secrets.
Data of 2048 octets or more is hashed without holding the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Self

from grid.crypto.buffer import Buffer

HASH_SIZE = 32
"""Octets of a whole hash; shorter ones are its front."""

BLOCK_TAG = b"allmydata_encoded_subshare_v1"
"""The leaf of a block hash tree is the hash of a block under this tag. [spec immutable 1]"""


def _frame(value: bytes) -> bytes:
    return b"%d:%b," % (len(value), value)


def tagged_hash(tag: bytes, data: Buffer, size: int = HASH_SIZE) -> bytes:
    """The first `size` octets of H(tag, data): the tag is framed, the data is not."""
    inner = sha256(_frame(tag))
    inner.update(data)
    return sha256(inner.digest()).digest()[:size]


def tagged_pieces_hash(tag: bytes, pieces: Iterable[Buffer], size: int = HASH_SIZE) -> bytes:
    """What tagged_hash gives for the pieces joined, without joining them."""
    inner = sha256(_frame(tag))
    for piece in pieces:
        inner.update(piece)
    return sha256(inner.digest()).digest()[:size]


def tagged_pair_hash(tag: bytes, left: bytes, right: bytes, size: int = HASH_SIZE) -> bytes:
    """The first `size` octets of HP(tag, left, right): all three are framed."""
    return sha256(sha256(_frame(tag) + _frame(left) + _frame(right)).digest()).digest()[:size]


class TaggedHasher:
    """Hashes data under one tag as it comes; the tag's part of the work is done once.

    Many items under one tag: make one hasher, leave it without updates, and call `hash_of` or `hash_row`,
    which do not change it and may run on several threads at once.
    """

    __slots__ = ("_inner",)

    def __init__(self, tag: bytes) -> None:
        self._inner = sha256(_frame(tag))

    def update(self, data: Buffer) -> None:
        """Append data to what is hashed."""
        self._inner.update(data)

    def digest(self, size: int = HASH_SIZE) -> bytes:
        """The first `size` octets of the hash of all data so far; more may follow."""
        return sha256(self._inner.digest()).digest()[:size]

    def copy(self) -> Self:
        """An independent hasher in the same state."""
        twin = type(self).__new__(type(self))
        twin._inner = self._inner.copy()
        return twin

    def hash_of(self, data: Buffer) -> bytes:
        """The 32-octet hash of what came so far and then this data, which is not kept."""
        inner = self._inner.copy()
        inner.update(data)
        return sha256(inner.digest()).digest()

    def hash_row(self, items: Iterable[Buffer]) -> bytes:
        """`hash_of` each item, joined: a row of leaves, 32 octets an item."""
        copy = self._inner.copy
        digests = []
        for item in items:
            inner = copy()
            inner.update(item)
            digests.append(sha256(inner.digest()).digest())
        return b"".join(digests)


_block_hasher = TaggedHasher(BLOCK_TAG)


def block_hash(block: Buffer) -> bytes:
    """The 32-octet leaf of one block in a block hash tree. [spec immutable 1; spec mutable 2]"""
    return _block_hasher.hash_of(block)
