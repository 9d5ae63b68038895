"""Tagged hashes: SHA-256 twice over a netstring-framed tag and the data. [spec caps 2]

Owns the framing, which separates hashes of different purposes. It never caches a tag, because some are secret.
Hashing 2048 bytes or more releases the interpreter's lock. Many messages are hashed
side by side where that is faster (multi_buffer.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Self

from grid.crypto.buffer import Buffer
from grid.crypto.hash_rows import RowCut
from grid.crypto.multi_buffer import Stream, multi_buffer

HASH_SIZE = 32
"""Bytes of a full hash; shorter hashes are its beginning."""

BLOCK_TAG = b"allmydata_encoded_subshare_v1"
"""A leaf of a block hash tree is the hash of a block under this tag. [spec immutable 1]"""


def _frame(value: bytes) -> bytes:
    return b"%d:%b," % (len(value), value)


def tagged_hash(tag: bytes, data: Buffer, size: int = HASH_SIZE) -> bytes:
    """The first `size` bytes of H(tag, data): the tag is framed, the data is not."""
    inner = sha256(_frame(tag))
    inner.update(data)
    return sha256(inner.digest()).digest()[:size]


def tagged_pair_hash(tag: bytes, left: bytes, right: bytes, size: int = HASH_SIZE) -> bytes:
    """The first `size` bytes of HP(tag, left, right): all three are framed."""
    return sha256(sha256(_frame(tag) + _frame(left) + _frame(right)).digest()).digest()[:size]


class TaggedHasher:
    """Hashes data under one tag, piece by piece. The tag is hashed only once."""

    __slots__ = ("_inner",)

    def __init__(self, tag: bytes) -> None:
        self._inner = sha256(_frame(tag))

    def update(self, data: Buffer) -> None:
        """Append data."""
        self._inner.update(data)

    def digest(self, size: int = HASH_SIZE) -> bytes:
        """The first `size` bytes of the hash of all data so far. More data may follow."""
        return sha256(self._inner.digest()).digest()[:size]

    def copy(self) -> Self:
        """An independent hasher in the same state."""
        twin = type(self).__new__(type(self))
        twin._inner = self._inner.copy()
        return twin


class LeafHasher:
    """Hashes many separate messages under one public tag. Any number of threads may use it."""

    __slots__ = ("_frame", "_inner", "_stream")

    def __init__(self, tag: bytes) -> None:
        self._frame = _frame(tag)
        self._inner = sha256(self._frame)
        self._stream: Stream | None = None

    def hash_of(self, *pieces: Buffer) -> bytes:
        """The 32-byte hash of the joined pieces."""
        inner = self._inner.copy()
        for piece in pieces:
            inner.update(piece)
        return sha256(inner.digest()).digest()

    def hash_row(self, items: Sequence[Buffer]) -> bytes:
        """The hash of each item, joined into a row of leaves of 32 bytes. Fastest for items of similar sizes."""
        library = multi_buffer() if len(items) > 1 else None
        if library is None:
            return b"".join([self.hash_of(item) for item in items])
        return library.hash_messages([self._prefix()] * len(items), [(item,) for item in items])

    def _prefix(self) -> Stream:
        if self._stream is None:
            library = multi_buffer()
            assert library is not None
            self._stream = library.stream(self._frame)
        return self._stream


def hash_rows(
    cut: RowCut,
    shares: Sequence[Buffer],
    leaf: LeafHasher,
    columns: Sequence[Buffer] = (),
    segment: LeafHasher | None = None,
    total: int = 0,
) -> tuple[bytes, bytes]:
    """The hash of each piece of the shares, share after share; and the hash of each row's joined pieces of the columns.

    total: bytes of all rows of the columns; the rest of the last row is padding. A buffer may be both a share and a
    column. This is one C call if the library is available. ValueError if sizes do not match.
    """
    cut.check(shares, columns, total)
    library = multi_buffer()
    if library is None:
        leaves = [leaf.hash_of(piece) for share in shares for piece in cut.pieces(share)]
        segments = [] if segment is None else [segment.hash_of(*row) for row in cut.rows(columns, total)]
        return b"".join(leaves), b"".join(segments)
    shape = (cut.count, cut.size, cut.last_size)
    return library.hash_rows(shape, shares, leaf._prefix(), columns, (segment or leaf)._prefix(), total)


class RunningHasher:
    """Hashes data under one tag and, in the same pass, parts of the data as leaves."""

    __slots__ = ("_inner", "_stream")

    def __init__(self, tag: bytes) -> None:
        library = multi_buffer()
        self._stream = None if library is None else library.stream(_frame(tag))
        self._inner = sha256(_frame(tag))

    def update(self, data: Buffer, hasher: LeafHasher, items: Sequence[Buffer]) -> bytes:
        """Append the data, and return `hasher.hash_row(items)`. One thread at a time."""
        library = multi_buffer()
        if self._stream is None or library is None:
            self._inner.update(data)
            return hasher.hash_row(items)
        messages = [(item,) for item in items]
        return library.hash_messages([hasher._prefix()] * len(items), messages, running=self._stream, data=data)

    def digest(self) -> bytes:
        """The 32-byte hash of all data so far. More data may follow."""
        library = multi_buffer()
        if self._stream is None or library is None:
            return sha256(self._inner.digest()).digest()
        return library.hash_messages([self._stream], [()])


_block_hasher = LeafHasher(BLOCK_TAG)


def hash_blocks(blocks: Sequence[Buffer]) -> bytes:
    """The joined leaves of these blocks in a block hash tree. [spec immutable 1; spec mutable 2]"""
    return _block_hasher.hash_row(blocks)


def hash_name() -> str:
    """The engine that hashes many messages: `lanes` for the library of multi_buffer.py, or hashlib alone."""
    return "hashlib" if multi_buffer() is None else "lanes"
