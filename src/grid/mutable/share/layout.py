"""Shares of both formats, chosen by the version byte: parses headers, plans and packs whole layouts. [spec mutable 7, 8]

Pure. Only this module chooses between sdmf and mdmf.
"""

from __future__ import annotations

from grid.mutable.share import mdmf, sdmf
from grid.mutable.share.geometry import SDMF_VERSION, Geometry
from grid.mutable.share.offset_table import ShareTable
from grid.mutable.share.prefix import Prefix, parse_prefix
from grid.ports import Buffer
from grid.values import field, frozen

HEADER_SIZE = max(sdmf.HEADER_SIZE, mdmf.HEADER_SIZE)
"""Bytes of the front that contain the header of either format."""


def parse_header(data: Buffer) -> tuple[Prefix, ShareTable]:
    """The prefix and offset table at the front of a share; FormatError, and UnknownVersionError for other formats."""
    prefix = parse_prefix(data)
    kind = sdmf if prefix.version == SDMF_VERSION else mdmf
    return prefix, kind.parse_table(data, prefix.geometry)


def plan_table(geometry: Geometry, public_key_size: int, private_key_size: int) -> ShareTable:
    """Where a writer puts the fields of every share of a version."""
    if geometry.version == SDMF_VERSION:
        return sdmf.plan_table(geometry, public_key_size, private_key_size)
    return mdmf.plan_table(geometry, public_key_size, private_key_size)


def pack_header(prefix: Prefix, table: ShareTable) -> bytes:
    """The signed prefix and the offset table after it."""
    packed = sdmf.pack_table(table) if prefix.version == SDMF_VERSION else mdmf.pack_table(table)
    return prefix.pack() + packed


@frozen(kw_only=True)
class VersionFields:
    """The fields that all shares of a version have in common, as bytes, and their offsets."""

    prefix: Prefix
    table: ShareTable
    public_key: bytes = field(repr=False)
    signature: bytes = field(repr=False)
    private_key: bytes = field(repr=False)

    def front(self, chain: bytes) -> bytes:
        """The first bytes of one share, through the end of the keys and the signature."""
        header = pack_header(self.prefix, self.table)
        if self.prefix.version == SDMF_VERSION:
            return header + self.public_key + self.signature + chain
        return header + self.private_key + chain + self.signature + self.public_key

    def front_writes(self, chain: Buffer, block_tree: Buffer) -> list[tuple[int, Buffer]]:
        """(offset, bytes) of everything in one share except its blocks, with the header last."""
        table = self.table
        return [
            (table.private_key[0], self.private_key),
            (table.chain[0], chain),
            (table.signature[0], self.signature),
            (table.public_key[0], self.public_key),
            (table.block_tree[0], block_tree),
            (0, pack_header(self.prefix, table)),
        ]
