"""Whether a share is the one whose number its server shows it under: its place in the share tree. [spec mutable 14]

Pure. Every share of a version has the same signed front, so a server that holds one of them can show it under any number. Its
hash chain fits one number only, and that of its neighbor in the tree; its block, where all of it is at hand, only its own.
"""

from __future__ import annotations

from enum import Enum

from grid.codec.merkle import prove_leaf
from grid.errors import FormatError, IntegrityError
from grid.mutable.share.audit import hash_blocks
from grid.mutable.share.geometry import HASH_SIZE
from grid.mutable.share.offset_table import ShareTable, parse_chain
from grid.mutable.share.versions import Sighting
from grid.ports import Range


class NumberProof(Enum):
    """UNKNOWN: what would prove the number has not come, or, of an empty version, does not exist."""

    PROVEN = "proven"
    FALSE = "false"
    UNKNOWN = "unknown"


def proof_ranges(table: ShareTable) -> list[Range]:
    """What proves the number of a share: its hash chain, and the root of its block hash tree."""
    return [table.chain, (table.block_tree[0], HASH_SIZE)]


def prove_number(share: Sighting) -> NumberProof:
    """What the bytes at hand say of the share's number."""
    geometry = share.prefix.geometry
    if not geometry.size:
        return NumberProof.UNKNOWN
    chain, root = (share.at_hand(wanted) for wanted in proof_ranges(share.table))
    if geometry.leaf_count == 1:
        # The root is the hash of the only block: where that is here, what is stored of it adds nothing.
        block_bytes, _ = geometry.run_sizes(0, 1)
        block = share.at_hand((share.table.data[0], block_bytes))
        root = root if block is None else hash_blocks(geometry, 0, 1, block)
    if chain is None or root is None:
        return NumberProof.UNKNOWN
    try:
        prove_leaf(share.prefix.root_hash, share.prefix.n, share.number, bytes(root), parse_chain(chain))
    except (FormatError, IntegrityError):
        return NumberProof.FALSE
    return NumberProof.PROVEN
