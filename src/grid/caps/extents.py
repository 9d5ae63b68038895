"""Capabilities of files that are a part of a pack, or made of other files, and what all known capabilities are.

Owns the values and their text; which numbers can be those of a file is `require_usable`'s to say. [spec extents 2, 4]
"""

from __future__ import annotations

from attrs import field, frozen, validators

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


@frozen(kw_only=True)
class SliceCap(_CapBase):
    """Reads one small file, whose ciphertext is bytes offset .. offset + length of a pack.

    pack: reads the pack, in which other files are ciphertext only. key: 16 bytes, the file's own.
    """

    prefix = "imm.URI:GRID-SLICE:"
    authority = "read"

    pack: ChkCap
    offset: int = field(validator=validators.ge(0))
    length: int = field(validator=validators.ge(0))
    key: bytes = field(repr=False, validator=[validators.min_len(16), validators.max_len(16)])

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.length

    @property
    def storage_index(self) -> StorageIndex:
        """What names the pack on servers."""
        return self.pack.storage_index

    def fields_text(self) -> str:
        """What follows the prefix."""
        return f"{self.pack.fields_text()}:{self.offset}:{self.length}:{base32.encode(self.key)}"

    def read_cap(self) -> SliceCap:
        """The cap itself."""
        return self

    def verify_cap(self) -> ChkVerifyCap:
        """What checks and repairs the pack without reading it."""
        return self.pack.verify_cap()


@frozen(kw_only=True)
class SequenceCap(_CapBase):
    """Reads a file that is made of parts of other immutable files. table: the file that lists them. size: of all parts."""

    prefix = "imm.URI:GRID-SEQUENCE:"
    authority = "read"

    size: int = field(validator=validators.ge(0))
    table: ChkCap | LitCap

    @property
    def storage_index(self) -> StorageIndex | None:
        """What names the table on servers; None if it is in the cap itself."""
        return self.table.storage_index

    def fields_text(self) -> str:
        """What follows the prefix."""
        return f"{self.size}:{self.table.to_string().removeprefix('URI:')}"

    def read_cap(self) -> SequenceCap:
        """The cap itself."""
        return self

    def verify_cap(self) -> ChkVerifyCap | None:
        """What checks the table, and nothing of the parts; None if it is in the cap itself."""
        return self.table.verify_cap()


ExtentCap = SliceCap | SequenceCap
"""Files that lie in other files."""

ImmutableFileCap = LitCap | ChkCap | SliceCap | SequenceCap
"""What reads a file that never changes; each has a size."""

KnownCap = FileCap | ExtentCap | DirectoryCap
Cap = KnownCap | UnknownCap
