"""The committed share sets, sound and damaged, and a deliberately simple verifier of single shares."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from attrs import field, frozen

from grid.caps import ChkCap, parse_cap
from grid.codec.merkle import build_tree, prove_leaf
from grid.crypto.hashing import tagged_hash
from grid.errors import FormatError, IntegrityError, UnknownVersionError
from grid.immutable.share.geometry import Geometry
from grid.immutable.share.layout import parse_chain, parse_header, parse_ueb_length
from grid.immutable.share.ueb import check_ueb, parse_ueb, ueb_hash

PATH = Path(__file__).parent.parent / "vectors" / "chk-shares.json"

Fault = Literal["format", "version", "integrity"]


@frozen(kw_only=True)
class ShareVector:
    """One file's shares, and the expected findings; tests/vectors/make_chk_shares.py says more."""

    name: str
    cap: ChkCap
    text: bytes | None = field(repr=False)
    shares: Mapping[int, bytes] = field(repr=False)
    faults: Mapping[int, Fault]
    get: Literal["ok", "too few", "damaged"]


@cache
def load_share_vectors() -> tuple[ShareVector, ...]:
    """All of them, in the order of the file."""
    contents = json.loads(PATH.read_text())
    data = [base64.b64decode(coded) for coded in contents["shares_data"]]
    vectors = []
    for entry in contents["vectors"]:
        cap = parse_cap(entry["cap"])
        assert isinstance(cap, ChkCap)
        vectors.append(
            ShareVector(
                name=entry["name"],
                cap=cap,
                text=None if entry["text"] is None else base64.b64decode(entry["text"]),
                shares={int(number): data[index] for number, index in entry["shares"].items()},
                faults={int(number): fault for number, fault in entry["faults"].items()},
                get=entry["get"],
            )
        )
    return tuple(vectors)


def find_fault(cap: ChkCap, share_number: int, share: bytes) -> Fault | None:
    """The fault of a share, after checking every byte; None if there is none."""
    try:
        verify_share(cap, share_number, share)
    except UnknownVersionError:
        return "version"
    except FormatError:
        return "format"
    except IntegrityError:
        return "integrity"
    return None


def verify_share(cap: ChkCap, share_number: int, share: bytes) -> Geometry:
    """Prove all of a share from its cap, in the order of [spec immutable 12]; FormatError or IntegrityError."""
    layout = parse_header(share)
    length_end = layout.ueb_offset + layout.length_field_size
    length = parse_ueb_length(layout, share[layout.ueb_offset : length_end])
    data = cut(share, length_end, length)
    if ueb_hash(data) != cap.ueb_hash:
        raise IntegrityError("extension block")
    ueb = parse_ueb(data)
    geometry = check_ueb(ueb, cap.size, cap.needed, cap.total)
    chain = parse_chain(cut(share, layout.chain_offset, layout.chain_size))
    root = chain.get(geometry.padded_share_count - 1 + share_number)
    if root is None:
        raise IntegrityError("chain")
    prove_leaf(ueb.share_root_hash, cap.total, share_number, root, chain)
    block_tree = cut(share, layout.block_tree_offset, geometry.tree_size)
    crypttext_tree = cut(share, layout.crypttext_tree_offset, geometry.tree_size)
    for tree, expected in ((block_tree, root), (crypttext_tree, ueb.crypttext_root_hash)):
        leaves = tree[-32 * geometry.padded_segment_count :][: 32 * geometry.segment_count]
        if tree[:32] != expected or tree != build_tree(leaves):
            raise IntegrityError("tree")
    for index in range(geometry.segment_count):
        block = cut(share, layout.data_offset + geometry.block_offset(index), geometry.block_length(index))
        leaf = 32 * (geometry.padded_segment_count - 1 + index)
        if tagged_hash(b"allmydata_encoded_subshare_v1", block) != block_tree[leaf : leaf + 32]:
            raise IntegrityError("block")
    return geometry


def cut(share: bytes, offset: int, length: int) -> bytes:
    """Those bytes of the share; FormatError if it does not have them all."""
    if offset + length > len(share):
        raise FormatError("the share is cut short")
    return share[offset : offset + length]
