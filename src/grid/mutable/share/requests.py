"""The requests that only plans of mutable files make: one class a kind, carried out by perform.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field

from grid.engine.requests import Request, ServerRequest
from grid.mutable.share.blocks import SourceRun
from grid.ports import Range, ShareNumber, TestWrite


@define(kw_only=True, eq=False)
class ReadSlot(ServerRequest):
    """Answer: those ranges of the shares named, or of all shares if none is."""

    shares: frozenset[ShareNumber]
    ranges: Sequence[Range]


@define(kw_only=True, eq=False)
class ReadFronts(ReadSlot):
    """The first bytes of all shares: which there are, and of which version.

    Its kinds are classes because a server may answer one and keep silent on another, which is remembered apart.
    """


@define(kw_only=True, eq=False)
class ReadFields(ReadSlot):
    """Keys, signatures and hashes."""


@define(kw_only=True, eq=False)
class ReadBlocks(ReadSlot):
    """Blocks, with the hashes that prove them."""


@define(kw_only=True, eq=False)
class WriteSlot(ServerRequest):
    """Answer: SlotAnswer, with the ranges of every share that was there before.

    share_numbers: those of the writes that change a share; the others are only tested.
    """

    writes: Mapping[ShareNumber, TestWrite] = field(repr=False)
    ranges: Sequence[Range]


@define(kw_only=True, eq=False)
class EncodeRun(Request):
    """Answer: EncodedRun, from the processor pool."""

    run: SourceRun = field(repr=False)
