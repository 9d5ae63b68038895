"""Capabilities of files that are part of a pack or made of other files, and the union of all known capabilities.

Owns the values and their text. `require_usable` decides which numbers a file can have. [spec extents 2, 4]
"""

from __future__ import annotations

from functools import lru_cache

from attrs import field, validators

from grid.caps.values import (
    ChkCap,
    ChkVerifyCap,
    DirectoryCap,
    FileCap,
    LitCap,
    StorageIndex,
    UnknownCap,
    _CapBase,
)
from grid.codec import base32
from grid.values import frozen

KEY_SIZE = 16

KEPT_PACKS = 64
"""Packs whose capabilities are remembered, as values and as text: directories list many slices of few packs."""


@lru_cache(KEPT_PACKS)
def _pack_text(pack: ChkCap) -> str:
    return pack.fields_text()


@frozen(kw_only=True)
class SliceCap(_CapBase):
    """Reads one small file, whose ciphertext is bytes offset .. offset + length of a pack.

    pack: reads the pack, in which other files are only ciphertext. key: the file's own, 16 bytes.
    """

    prefix = "imm.URI:GRID-SLICE:"
    authority = "read"

    pack: ChkCap
    offset: int
    length: int
    key: bytes = field(repr=False)

    def __attrs_post_init__(self) -> None:
        # By hand: a directory may list tens of thousands of slices, and four validators take longer than all else here.
        if self.offset < 0 or self.length < 0 or len(self.key) != KEY_SIZE:
            raise ValueError("the numbers or the key of a slice are impossible")

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self.length

    @property
    def storage_index(self) -> StorageIndex:
        """The storage index of the pack."""
        return self.pack.storage_index

    def fields_text(self) -> str:
        """What follows the prefix."""
        return f"{_pack_text(self.pack)}:{self.offset}:{self.length}:{base32.encode(self.key)}"

    def read_cap(self) -> SliceCap:
        """The cap itself."""
        return self

    def verify_cap(self) -> ChkVerifyCap:
        """The capability that checks and repairs the pack without reading it."""
        return self.pack.verify_cap()


@frozen(kw_only=True)
class SequenceCap(_CapBase):
    """Reads a file made of parts of other immutable files. table: the file that lists them. size: of all parts together."""

    prefix = "imm.URI:GRID-SEQUENCE:"
    authority = "read"

    size: int = field(validator=validators.ge(0))
    table: ChkCap | LitCap

    @property
    def storage_index(self) -> StorageIndex | None:
        """The storage index of the table; None if the table is in the capability itself."""
        return self.table.storage_index

    def fields_text(self) -> str:
        """What follows the prefix."""
        return f"{self.size}:{self.table.to_string().removeprefix('URI:')}"

    def read_cap(self) -> SequenceCap:
        """The cap itself."""
        return self

    def verify_cap(self) -> ChkVerifyCap | None:
        """The capability that checks the table, but none of the parts; None if the table is in the capability itself."""
        return self.table.verify_cap()


ExtentCap = SliceCap | SequenceCap
"""Files that are part of other files."""

ImmutableFileCap = LitCap | ChkCap | SliceCap | SequenceCap
"""Capabilities that read a file that never changes; each has a size."""

KnownCap = FileCap | ExtentCap | DirectoryCap
Cap = KnownCap | UnknownCap
