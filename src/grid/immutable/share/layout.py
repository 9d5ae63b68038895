"""The layout of an immutable share: its sections, the header that locates them, and the trailer after the blocks.

Owns all bytes of a share except the blocks. It never trusts a value of the header: every offset
is only the server's claim. [spec immutable 8, 10, 14]
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from grid import limits
from grid.codec.merkle import sibling_chain
from grid.engine.batches import DEFAULT_MAX_SEGMENT_SIZE
from grid.errors import FormatError, UnknownVersionError
from grid.immutable.share.geometry import HASH_SIZE, Geometry
from grid.immutable.share.ueb import ueb_size
from grid.ports import Buffer
from grid.values import frozen

MAX_HEADER_SIZE = 68
"""Bytes that are enough for the header of either version."""
CHAIN_ENTRY_SIZE = 34
"""Bytes of an entry: a 2-byte node number and a 32-byte hash."""
MAX_CHAIN_SIZE = CHAIN_ENTRY_SIZE * (2 * limits.MAX_SHARES - 1)
"""Bytes of a chain that contains every node of the largest share hash tree. Writers store at most 9 entries."""

_HEADERS = {1: struct.Struct(">9L"), 2: struct.Struct(">L8Q")}
_LENGTH_FIELDS = {1: struct.Struct(">L"), 2: struct.Struct(">Q")}
_ENTRY = struct.Struct(f">H{HASH_SIZE}s")
_MAX_OFFSET = 2**63
_SMALL_TABLE = 8
_LARGE_TABLE = 32


@frozen(kw_only=True)
class ShareLayout:
    """Offsets of the sections of one share, in bytes from its start; version is 1 or 2."""

    version: int
    data_offset: int
    plaintext_tree_offset: int
    crypttext_tree_offset: int
    block_tree_offset: int
    chain_offset: int
    ueb_offset: int

    @property
    def length_field_size(self) -> int:
        """Bytes of the length field at ueb_offset, which precedes the extension block."""
        return _LENGTH_FIELDS[self.version].size

    @property
    def chain_size(self) -> int:
        """Bytes of the share hash chain."""
        return self.ueb_offset - self.chain_offset


@frozen(kw_only=True)
class Guess:
    """The layout of a share if its writer used the assumed segment size; exact for nearly every file."""

    geometry: Geometry
    layout: ShareLayout
    ueb_size: int
    share_size: int


def plan_layout(geometry: Geometry) -> ShareLayout:
    """The layout that a writer uses for every share of a file: version 1, unless a number does not fit.

    FormatError if the file is too large for either version. [spec immutable 10]
    """
    for version, bits in ((1, 32), (2, 64)):
        layout = _lay_out(version, geometry)
        if max(geometry.block_size, geometry.data_size, layout.ueb_offset).bit_length() <= bits:
            return layout
    raise FormatError(f"shares of a file of {geometry.size} bytes are too large for any layout")


def guess(size: int, k: int, n: int, max_segment_size: int = DEFAULT_MAX_SEGMENT_SIZE) -> Guess:
    """The layout of every share of a file that was written with this maximum segment size.

    FormatError if size, k or n are out of bounds. [spec immutable 14]
    """
    geometry = Geometry.of_file(size, k, n, max_segment_size)
    layout = plan_layout(geometry)
    length = ueb_size(geometry)
    return Guess(geometry=geometry, layout=layout, ueb_size=length, share_size=share_size(layout, length))


def share_size(layout: ShareLayout, ueb_size: int) -> int:
    """Bytes of a whole share: exactly what a writer allocates on servers."""
    return layout.ueb_offset + layout.length_field_size + ueb_size


def pack_header(layout: ShareLayout, geometry: Geometry) -> bytes:
    """The bytes before the first block, the same in every share of the file."""
    return _HEADERS[layout.version].pack(
        layout.version,
        geometry.block_size,
        geometry.data_size,
        layout.data_offset,
        layout.plaintext_tree_offset,
        layout.crypttext_tree_offset,
        layout.block_tree_offset,
        layout.chain_offset,
        layout.ueb_offset,
    )


def parse_header(data: Buffer) -> ShareLayout:
    """The layout that a share's header claims. data: the first MAX_HEADER_SIZE bytes of the share, or all of it if it is shorter.

    Sections need be neither adjacent nor in order, except where the offsets give a section its size.
    Block size and data size are ignored. UnknownVersionError if this may be a future version.
    FormatError if it cannot be one, or if the header is cut short or its offsets cannot be those of a share.
    """
    if len(data) < 4:
        raise FormatError(f"a share of {len(data)} bytes is too short for a header")
    version = int.from_bytes(data[:4], "big")
    header = _HEADERS.get(version)
    if header is None and not 2 < version < 256:
        # All zeros, or noise: no future version will have such a number.
        raise FormatError(f"the share begins with {data[:4].hex()}, which is not a known version")
    if header is None:
        raise UnknownVersionError(f"the share is of version {version}; 1 and 2 are known")
    if len(data) < header.size:
        raise FormatError(f"the header of the share is cut short at {len(data)} bytes")
    _, _, _, *offsets = header.unpack_from(data)
    data_offset, plaintext_tree, crypttext_tree, block_tree, chain, ueb = offsets
    if max(offsets) >= _MAX_OFFSET or min(data_offset, crypttext_tree, block_tree) < header.size:
        raise FormatError("a section of the share lies inside its header or past any possible end")
    if chain < block_tree or (chain - block_tree) % HASH_SIZE:
        raise FormatError(f"the block hash tree of the share cannot have {chain - block_tree} bytes")
    if not 0 <= ueb - chain <= MAX_CHAIN_SIZE or (ueb - chain) % CHAIN_ENTRY_SIZE:
        raise FormatError(f"the share hash chain cannot have {ueb - chain} bytes")
    return ShareLayout(
        version=version,
        data_offset=data_offset,
        plaintext_tree_offset=plaintext_tree,
        crypttext_tree_offset=crypttext_tree,
        block_tree_offset=block_tree,
        chain_offset=chain,
        ueb_offset=ueb,
    )


def pack_ueb_length(layout: ShareLayout, length: int) -> bytes:
    """The length field before an extension block of this length; length_field_size bytes."""
    return _LENGTH_FIELDS[layout.version].pack(length)


def parse_ueb_length(layout: ShareLayout, data: Buffer) -> int:
    """The length of the extension block, from the bytes at ueb_offset; extra bytes are ignored.

    FormatError if the field is cut short, or if no extension block can have that length.
    """
    field = _LENGTH_FIELDS[layout.version]
    if len(data) < field.size:
        raise FormatError("the length of the extension block is cut short")
    (length,) = field.unpack_from(data)
    if not 0 < length < limits.MAX_UEB_SIZE:
        raise FormatError(f"an extension block cannot have {length} bytes")
    return int(length)


def pack_chain(share_number: int, share_count: int, nodes: Mapping[int, bytes] | Sequence[bytes]) -> bytes:
    """The share hash chain of one share, with its entries in 1.20's order.

    nodes: hashes of the share hash tree by node number, at least those in `chain_order`.
    """
    return b"".join(_ENTRY.pack(number, nodes[number]) for number in chain_order(share_number, share_count))


def parse_chain(data: Buffer) -> dict[int, bytes]:
    """The hashes of a share hash chain by node number; if a number is repeated, the last one counts.

    The nodes are unproven, and may not exist in the tree. FormatError if the bytes are not
    whole entries, or too many.
    """
    if len(data) % CHAIN_ENTRY_SIZE or len(data) > MAX_CHAIN_SIZE:
        raise FormatError(f"a share hash chain cannot have {len(data)} bytes")
    return dict(_ENTRY.iter_unpack(data))


def chain_order(share_number: int, share_count: int) -> list[int]:
    """The node numbers of one share's chain in 1.20's order, which is the order of a small hash set.

    Readers accept any order. Only shares that must be equal byte for byte need this one. [spec immutable 8]
    """
    leaf = 2 ** (share_count - 1).bit_length() - 1 + share_number
    table: list[int | None] = [None] * _SMALL_TABLE
    for count, number in enumerate([*sibling_chain(share_number, share_count), leaf], 1):
        _insert(table, number)
        if count == 5:
            crowded, table = table, [None] * _LARGE_TABLE
            for moved in crowded:
                if moved is not None:
                    _insert(table, moved)
    return [number for number in table if number is not None]


def _insert(table: list[int | None], number: int) -> None:
    """Put the number into the first free slot of its probe sequence."""
    mask = len(table) - 1
    slot = number & mask
    perturbation = number
    while True:
        run = 10 if slot + 9 <= mask else 1
        for candidate in range(slot, slot + run):
            if table[candidate] is None:
                table[candidate] = number
                return
        perturbation >>= 5
        slot = (5 * slot + 1 + perturbation) & mask


def _lay_out(version: int, geometry: Geometry) -> ShareLayout:
    data_offset = _HEADERS[version].size
    plaintext_tree = data_offset + geometry.data_size
    chain = plaintext_tree + 3 * geometry.tree_size
    return ShareLayout(
        version=version,
        data_offset=data_offset,
        plaintext_tree_offset=plaintext_tree,
        crypttext_tree_offset=plaintext_tree + geometry.tree_size,
        block_tree_offset=plaintext_tree + 2 * geometry.tree_size,
        chain_offset=chain,
        ueb_offset=chain + CHAIN_ENTRY_SIZE * geometry.chain_entry_count,
    )
