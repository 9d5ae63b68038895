"""The contents of a pack: ciphertexts of small files, equal ones only once. Pure. [spec extents 1]

Memory: the pack, whose size its writer limits; a key and two numbers per distinct file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grid.caps import ChkCap, LitCap, SliceCap
from grid.errors import GridError
from grid.extents.ciphers import encrypt_slice, slice_key
from grid.ports import Buffer
from grid.values import field, frozen

LEAST_SIZE = 56
"""Least size of a packed file: a smaller one fits into its capability."""

MOST_SIZE = 256 * 2**10
"""Largest size of a packed file: a larger one costs little by itself."""

PACK_SIZE = 16 * 2**20
"""A pack is stored once it has this many bytes; it is held whole until then."""

SEGMENT_SIZE = 16 * 2**10
"""Bytes of a segment of a pack: reading one small file takes one or two."""


def is_packed(size: int) -> bool:
    """Whether a file of this size is packed."""
    return LEAST_SIZE <= size <= MOST_SIZE


@frozen(kw_only=True)
class Extent:
    """Where a file is in a pack that is not stored yet."""

    offset: int
    length: int
    key: bytes = field(repr=False)

    def slice_of(self, pack: ChkCap | LitCap) -> SliceCap:
        """The file's capability, once the pack has one."""
        if not isinstance(pack, ChkCap):
            raise GridError("a pack this small cannot be stored")
        return SliceCap(pack=pack, offset=self.offset, length=self.length, key=self.key)


class PackContents:
    """A pack that is being filled. secret: the convergence secret; None for a random key per file."""

    def __init__(self, secret: bytes | None, random_bytes: Callable[[int], bytes]) -> None:
        self._secret = secret
        self._random_bytes = random_bytes
        self._extents: dict[bytes, Extent] = {}
        self.data = bytearray()

    @property
    def size(self) -> int:
        """Bytes so far."""
        return len(self.data)

    @property
    def is_full(self) -> bool:
        """Whether to store it now."""
        return len(self.data) >= PACK_SIZE

    def add_all(self, plaintexts: Sequence[Buffer]) -> list[Extent]:
        """Add many files. One thread at a time."""
        return [self.add(plaintext) for plaintext in plaintexts]

    def add(self, plaintext: Buffer) -> Extent:
        """Add a file, unless an equal one is in the pack. Hashes and encrypts, so call it on the pool."""
        if not plaintext:
            raise GridError("an empty file is not packed")
        key = self._random_bytes(16) if self._secret is None else slice_key(self._secret, plaintext)
        extent = self._extents.get(key)
        if extent is None:
            extent = Extent(offset=len(self.data), length=len(plaintext), key=key)
            self.data += encrypt_slice(key, plaintext)
            if self._secret is not None:
                self._extents[key] = extent
        return extent
