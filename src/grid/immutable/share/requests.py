"""The requests that only plans of immutable files make, one class per kind. perform.py carries them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.engine.requests import AddLease, Request, ServerRequest
from grid.immutable.share.encode import EncodedBatch, FinishedEncoding
from grid.ports import Buffer, Range, ServerId, ShareNumber, ShareWrite
from grid.values import define, field

CLOSE_SHARES = "CloseShares"
"""The memory of servers keeps writes that close shares under this name."""


@define(kw_only=True, eq=False)
class AskVersion(ServerRequest):
    """Answer: ServerVersion."""


@define(kw_only=True, eq=False)
class FindShares(ServerRequest):
    """Answer: every share held, with these ranges of each."""

    ranges: Sequence[Range] = ()


@define(kw_only=True, eq=False)
class ReadShares(ServerRequest):
    """Answer: these ranges of the named shares."""

    wants: Mapping[ShareNumber, Sequence[Range]]


@define(kw_only=True, eq=False)
class Allocate(ServerRequest):
    """Answer: Allocation. If withdrawn, whatever the server still allocates is aborted."""

    wanted: frozenset[ShareNumber]
    share_size: int


@define(kw_only=True, eq=False)
class StoreShares(ServerRequest):
    """Answer: StoreAnswer. If withdrawn, the server may still store the shares."""

    shares: Mapping[ShareNumber, Sequence[Buffer]] = field(repr=False)


@define(kw_only=True, eq=False)
class WriteShares(ServerRequest):
    """Answer: None, once the server has taken all of it.

    closing: shares that end with these bytes. The answer means that they are durable, with all bytes sent before.
    """

    writes: Sequence[ShareWrite] = field(repr=False)
    closing: frozenset[ShareNumber] = frozenset()

    @property
    def memory_kind(self) -> str:
        """Apart from other writes if it closes shares: a server may take all bytes and stall when it syncs them to its disk."""
        return CLOSE_SHARES if self.closing else super().memory_kind


@define(kw_only=True, eq=False)
class AbortUpload(ServerRequest):
    """Abort everything that one server has allocated; a parting request."""

    parting: bool = True


@define(kw_only=True, eq=False)
class EncodeSegments(Request):
    """Answer: EncodedBatch, from the processor pool."""

    first_segment: int
    text: Buffer = field(repr=False)


@define(kw_only=True, eq=False)
class AbsorbBatch(Request):
    """Answer: None. Batches are absorbed in order, one at a time."""

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
"""What a check without verification asks of a server, as the memory of servers names requests."""

READ_KINDS = (FindShares.__name__, ReadShares.__name__)
"""What a server must answer so that a file can be read from it, as the memory of servers names requests."""

UPLOAD_KINDS = (
    *(kind.__name__ for kind in (AskVersion, FindShares, Allocate, StoreShares, WriteShares)),
    CLOSE_SHARES,
)
"""What a server must answer to receive new shares, as the memory of servers names requests."""
