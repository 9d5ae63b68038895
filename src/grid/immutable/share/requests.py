"""The requests that only plans of immutable files make: one class a kind, carried out by perform.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field

from grid.engine.requests import AddLease, Request, ServerRequest
from grid.immutable.share.encode import EncodedBatch, FinishedEncoding
from grid.ports import Buffer, Range, ServerId, ShareNumber, ShareWrite


@define(kw_only=True, eq=False)
class AskVersion(ServerRequest):
    """Answer: ServerVersion."""


@define(kw_only=True, eq=False)
class FindShares(ServerRequest):
    """Answer: every share held, with these ranges of each."""

    ranges: Sequence[Range] = ()


@define(kw_only=True, eq=False)
class ReadShares(ServerRequest):
    """Answer: ranges of the shares named."""

    wants: Mapping[ShareNumber, Sequence[Range]]


@define(kw_only=True, eq=False)
class Allocate(ServerRequest):
    """Answer: Allocation. When withdrawn, what the server still allocates is aborted."""

    wanted: frozenset[ShareNumber]
    share_size: int


@define(kw_only=True, eq=False)
class StoreShares(ServerRequest):
    """Answer: StoreAnswer. When withdrawn, the server may still store the shares."""

    shares: Mapping[ShareNumber, Sequence[Buffer]] = field(repr=False)


@define(kw_only=True, eq=False)
class WriteShares(ServerRequest):
    """Answer: None, when the server has taken all of it.

    closing: shares of which these are the last bytes; they are durable by then, with all that was sent of them before.
    """

    writes: Sequence[ShareWrite] = field(repr=False)
    closing: frozenset[ShareNumber] = frozenset()


@define(kw_only=True, eq=False)
class AbortUpload(ServerRequest):
    """Give up what one server has allocated; a parting request."""

    parting: bool = True


@define(kw_only=True, eq=False)
class EncodeSegments(Request):
    """Answer: EncodedBatch, from the processor pool."""

    first_segment: int
    text: Buffer = field(repr=False)


@define(kw_only=True, eq=False)
class AbsorbBatch(Request):
    """Answer: None; batches are absorbed one after the other, in order."""

    batch: EncodedBatch = field(repr=False)


@define(kw_only=True, eq=False)
class FinishEncoding(Request):
    """Answer: FinishedEncoding."""


@define(kw_only=True, eq=False)
class MakeTrailers(Request):
    """Answer: share number to the bytes after its blocks, from the processor pool."""

    for_server: ServerId
    shares: frozenset[ShareNumber]
    finished: FinishedEncoding = field(repr=False)


ASKING_KINDS = (FindShares.__name__, AddLease.__name__)
"""What a server is asked by a check that reads no shares, by the names that the memory of servers keeps."""

READ_KINDS = (FindShares.__name__, ReadShares.__name__)
"""What a server must answer to be read from, by the names that the memory of servers keeps."""

UPLOAD_KINDS = tuple(kind.__name__ for kind in (AskVersion, FindShares, Allocate, StoreShares, WriteShares))
"""What a server must answer to take new shares, by the names that the memory of servers keeps."""
