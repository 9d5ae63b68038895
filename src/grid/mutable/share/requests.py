"""The requests that only plans of mutable files make, one class per kind. perform.py carries them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.engine.requests import Request, ServerRequest
from grid.mutable.share.blocks import SourceRun
from grid.ports import Range, ShareNumber, TestWrite
from grid.values import define, field


@define(kw_only=True, eq=False)
class ReadSlot(ServerRequest):
    """Answer: those ranges of the named shares, or of all shares if none is named."""

    shares: frozenset[ShareNumber]
    ranges: Sequence[Range]


@define(kw_only=True, eq=False)
class ReadFronts(ReadSlot):
    """Reads the first bytes of all shares, which show the shares that exist and their versions.

    Reads have several classes because a server may answer one kind and not another, and the memory of servers tells them apart.
    """


@define(kw_only=True, eq=False)
class ReadFields(ReadSlot):
    """Reads keys, signatures and hashes."""


@define(kw_only=True, eq=False)
class ReadBlocks(ReadSlot):
    """Reads blocks and the hashes that prove them."""


@define(kw_only=True, eq=False)
class WriteSlot(ServerRequest):
    """Answer: SlotAnswer, with the ranges of every share as they were before the write.

    share_numbers: shares that the write changes. The others are only tested.
    """

    writes: Mapping[ShareNumber, TestWrite] = field(repr=False)
    ranges: Sequence[Range]


@define(kw_only=True, eq=False)
class EncodeRun(Request):
    """Answer: EncodedRun, from the processor pool."""

    run: SourceRun = field(repr=False)
