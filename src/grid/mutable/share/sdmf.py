"""The layout of an SDMF share: one segment, always written whole. [spec mutable 7]

Pure: packs and parses the offset table that follows the signed prefix.
"""

from __future__ import annotations

import struct

from grid.errors import FormatError
from grid.mutable.share.geometry import Geometry
from grid.mutable.share.offset_table import SIGNATURE_SIZE, ShareTable, require_ascending
from grid.ports import Buffer

TABLE_OFFSET = 75
_TABLE = struct.Struct(">LLLLQQ")
HEADER_SIZE = TABLE_OFFSET + _TABLE.size


def plan_table(geometry: Geometry, public_key_size: int, private_key_size: int) -> ShareTable:
    """The only offset table that a writer may use for these sizes."""
    signature = HEADER_SIZE + public_key_size
    chain = signature + SIGNATURE_SIZE
    tree = chain + geometry.chain_size
    data = tree + geometry.tree_size
    private_key = data + geometry.data_size
    return ShareTable(
        public_key=(HEADER_SIZE, public_key_size),
        signature=(signature, SIGNATURE_SIZE),
        chain=(chain, geometry.chain_size),
        block_tree=(tree, geometry.tree_size),
        data=(data, geometry.data_size),
        private_key=(private_key, private_key_size),
        eof=private_key + private_key_size,
    )


def pack_table(table: ShareTable) -> bytes:
    """The bytes at TABLE_OFFSET; FormatError if the share is too large for SDMF."""
    offsets = (table.signature[0], table.chain[0], table.block_tree[0], table.data[0], table.private_key[0], table.eof)
    try:
        return _TABLE.pack(*offsets)
    except struct.error:
        raise FormatError("an SDMF share cannot have this layout") from None


def parse_table(data: Buffer, geometry: Geometry) -> ShareTable:
    """The offset table in a share's front; FormatError if no share of this geometry has it."""
    if len(data) < HEADER_SIZE:
        raise FormatError("the share ends within its header")
    signature, chain, tree, blocks, private_key, eof = _TABLE.unpack_from(data, TABLE_OFFSET)
    require_ascending(HEADER_SIZE, signature, chain, tree, blocks, private_key, eof)
    table = ShareTable(
        public_key=(HEADER_SIZE, signature - HEADER_SIZE),
        signature=(signature, chain - signature),
        chain=(chain, tree - chain),
        block_tree=(tree, blocks - tree),
        data=(blocks, private_key - blocks),
        private_key=(private_key, eof - private_key),
        eof=eof,
    )
    table.check(geometry)
    return table
