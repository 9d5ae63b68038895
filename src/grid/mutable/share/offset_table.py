"""Where the fields of a share are: the parsed form of both formats' offset tables. [spec mutable 8]

Pure. The tables are not signed, so every value is checked against the signed sizes and against limits.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from itertools import pairwise

from grid.errors import FormatError
from grid.limits import MAX_CHAIN_ENTRIES, MAX_RSA_KEY_SIZE, MAX_SLOT_SIZE
from grid.mutable.share.geometry import CHAIN_ENTRY_SIZE, Geometry
from grid.ports import Buffer, Range
from grid.values import frozen

SIGNATURE_SIZE = 256
_CHAIN_ENTRY = struct.Struct(">H32s")


@frozen(kw_only=True)
class ShareTable:
    """Ranges (offset, size) of a share's fields. eof: where the share ends, whatever follows it in the slot."""

    public_key: Range
    signature: Range
    chain: Range
    block_tree: Range
    data: Range
    private_key: Range
    eof: int

    def check(self, geometry: Geometry) -> None:
        """Raise FormatError unless every field has a size that it can have."""
        if self.eof > MAX_SLOT_SIZE:
            raise FormatError(f"a share of {self.eof} bytes is too large")
        for name, (_, size), most in (
            ("public key", self.public_key, MAX_RSA_KEY_SIZE),
            ("private key", self.private_key, MAX_RSA_KEY_SIZE),
            ("share hash chain", self.chain, CHAIN_ENTRY_SIZE * MAX_CHAIN_ENTRIES),
        ):
            if not 0 <= size <= most:
                raise FormatError(f"a {name} cannot have {size} bytes")
        if self.signature[1] != SIGNATURE_SIZE:
            raise FormatError(f"a signature cannot have {self.signature[1]} bytes")
        if self.chain[1] % CHAIN_ENTRY_SIZE:
            raise FormatError("the share hash chain is not whole entries")
        if self.block_tree[1] != geometry.tree_size:
            raise FormatError(f"a block hash tree of {self.block_tree[1]} bytes does not fit the file")
        if self.data[1] < geometry.data_size:
            raise FormatError("the share's data does not have the size of its blocks")


def require_ascending(*offsets: int) -> None:
    """Raise FormatError unless the offsets ascend; equal ones are allowed."""
    if any(first > second for first, second in pairwise(offsets)):
        raise FormatError("the share's offsets do not ascend")


def pack_chain(nodes: Mapping[int, bytes]) -> bytes:
    """Pack a share hash chain, in ascending order of node numbers."""
    return b"".join(_CHAIN_ENTRY.pack(number, nodes[number]) for number in sorted(nodes))


def parse_chain(data: Buffer) -> dict[int, bytes]:
    """Parse a share hash chain into node number to hash, in any order; FormatError."""
    if len(data) % CHAIN_ENTRY_SIZE or len(data) > CHAIN_ENTRY_SIZE * MAX_CHAIN_ENTRIES:
        raise FormatError(f"{len(data)} bytes are not a share hash chain")
    return dict(_CHAIN_ENTRY.iter_unpack(data))
