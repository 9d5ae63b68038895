"""Capability strings and the values they stand for. [spec caps]"""

from __future__ import annotations

from grid.caps.extents import Cap, ExtentCap, ImmutableFileCap, KnownCap, SequenceCap, SliceCap
from grid.caps.parsing import has_cap_prefix, is_literal, parse_cap, require_usable
from grid.caps.unknown import UnknownChild, settle_unknown_child
from grid.caps.values import (
    Authority,
    ChkCap,
    ChkVerifyCap,
    DirectoryCap,
    FileCap,
    LitCap,
    MdmfReadCap,
    MdmfVerifyCap,
    MdmfWriteCap,
    SdmfReadCap,
    SdmfVerifyCap,
    SdmfWriteCap,
    StorageIndex,
    UnknownCap,
)

__all__ = [
    "Authority", "Cap", "ChkCap", "ChkVerifyCap", "DirectoryCap", "ExtentCap", "FileCap", "ImmutableFileCap",
    "KnownCap", "LitCap", "MdmfReadCap", "MdmfVerifyCap", "MdmfWriteCap", "SdmfReadCap", "SdmfVerifyCap",
    "SdmfWriteCap", "SequenceCap", "SliceCap", "StorageIndex", "UnknownCap", "UnknownChild", "has_cap_prefix", "is_literal", "parse_cap", "require_usable", "settle_unknown_child",
]  # fmt: skip
