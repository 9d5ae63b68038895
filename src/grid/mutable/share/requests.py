"""What the plans of a mutable file ask for: one class a kind, carried out by perform.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import define, field

from grid.drive import Request
from grid.mutable.share.blocks import SegmentRun
from grid.mutable.share.segment_run import Window
from grid.ports import Buffer, Range, ServerId, ShareNumber, TestWrite


@define(kw_only=True, eq=False)
class ServerRequest(Request):
    """A request that one server answers."""

    server_id: ServerId


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
    """Answer: SlotAnswer, with the ranges of every share that was there before."""

    writes: Mapping[ShareNumber, TestWrite] = field(repr=False)
    ranges: Sequence[Range]


@define(kw_only=True, eq=False)
class AddLease(ServerRequest):
    """Answer: None."""


@define(kw_only=True, eq=False)
class AdviseCorrupt(ServerRequest):
    """A parting word to a server whose share failed; its answer does not matter."""

    share_number: ShareNumber
    reason: str
    parting: bool = True


@define(kw_only=True, eq=False)
class OpenWindow(Request):
    """Answer: WindowResult, from the processor pool."""

    window: Window = field(repr=False)


@define(kw_only=True, eq=False)
class Compute(Request):
    """Answer: what the job returns, from the processor pool."""

    job: Callable[[], object] = field(repr=False)


@define(kw_only=True, eq=False)
class Deliver(Request):
    """Answer: None, when the consumer has taken the bytes."""

    data: Buffer = field(repr=False)


@define(kw_only=True, eq=False)
class ReadSource(Request):
    """Answer: exactly these bytes of what is written."""

    offset: int
    length: int


@define(kw_only=True, eq=False)
class EncodeRun(Request):
    """Answer: EncodedRun, from the processor pool."""

    run: SegmentRun = field(repr=False)
