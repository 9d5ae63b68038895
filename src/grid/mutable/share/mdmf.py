"""The layout of an MDMF share: many segments, each with its salt, rewritable one by one. [spec mutable 8]

Pure: packs and parses the offset table that follows the signed prefix.
"""

from __future__ import annotations

import struct

from grid.errors import FormatError
from grid.mutable.share.geometry import Geometry
from grid.mutable.share.offset_table import SIGNATURE_SIZE, ShareTable, require_ascending
from grid.ports import Buffer

TABLE_OFFSET = 59
_TABLE = struct.Struct(">QQQQQQQQ")
HEADER_SIZE = TABLE_OFFSET + _TABLE.size
DATA_OFFSET = 2167
"""Where blocks start in every finished share; the keys always fit before it."""


def plan_table(
    geometry: Geometry, public_key_size: int, private_key_size: int, data_offset: int = DATA_OFFSET
) -> ShareTable:
    """The offset table of a finished share of these sizes.

    data_offset: elsewhere only while a version is being moved into place. FormatError if the keys do not fit.
    """
    chain = HEADER_SIZE + private_key_size
    signature = chain + geometry.chain_size
    public_key = signature + SIGNATURE_SIZE
    if public_key + public_key_size > DATA_OFFSET or data_offset < DATA_OFFSET:
        raise FormatError("the keys do not fit into an MDMF share")
    tree = data_offset + geometry.data_size
    return ShareTable(
        public_key=(public_key, public_key_size),
        signature=(signature, SIGNATURE_SIZE),
        chain=(chain, geometry.chain_size),
        block_tree=(tree, geometry.tree_size),
        data=(data_offset, geometry.data_size),
        private_key=(HEADER_SIZE, private_key_size),
        eof=tree + geometry.tree_size,
    )


def pack_table(table: ShareTable) -> bytes:
    """The bytes at TABLE_OFFSET."""
    public_key, size = table.public_key
    return _TABLE.pack(
        table.private_key[0],
        table.chain[0],
        table.signature[0],
        public_key,
        public_key + size,
        table.data[0],
        table.block_tree[0],
        table.eof,
    )


def parse_table(data: Buffer, geometry: Geometry) -> ShareTable:
    """The offset table in a share's front; FormatError if no share of this geometry has it."""
    if len(data) < HEADER_SIZE:
        raise FormatError("the share ends within its header")
    private_key, chain, signature, public_key, public_end, blocks, tree, eof = _TABLE.unpack_from(data, TABLE_OFFSET)
    require_ascending(HEADER_SIZE, private_key, chain, signature, public_key, public_end, blocks, tree, eof)
    table = ShareTable(
        public_key=(public_key, public_end - public_key),
        signature=(signature, public_key - signature),
        chain=(chain, signature - chain),
        block_tree=(tree, eof - tree),
        data=(blocks, tree - blocks),
        private_key=(private_key, chain - private_key),
        eof=eof,
    )
    table.check(geometry)
    return table
