"""One share on one server, as a read sees it: which bytes have arrived, and what is proven.

Pure. Bytes at hand are unproven unless a proof covers them. [spec immutable 12, 14]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TypeVar

from grid import limits
from grid.engine.lateness import ServerLoad
from grid.engine.requests import AdviseCorrupt, Request
from grid.errors import DamagedFileError, FormatError, GridError
from grid.immutable.share.layout import MAX_HEADER_SIZE, ShareLayout, parse_header, parse_ueb_length
from grid.immutable.share.verify import UEB_MISMATCH, FileVerifier
from grid.ports import Buffer, Range, ServerId, ShareNumber
from grid.values import define, field

R = TypeVar("R", bound=Request)


class ShareState(Enum):
    """How far a share has come: FOUND -> READY. It may become DROPPED at any time."""

    FOUND = "found"
    READY = "ready"
    DROPPED = "dropped"


@define(kw_only=True, eq=False)
class Peer(ServerLoad):
    """A server of one read. order: its position in the file's order. error: why it is no longer used."""

    server_id: ServerId
    order: int
    error: GridError | None = None


@define(kw_only=True, eq=False)
class HeldShare:
    """One share on one server.

    at_hand: (offset, bytes) pieces fetched so far. asked: ranges that were requested separately.
    bad_segments: segments whose block in this share is known to be false.
    """

    peer: Peer
    number: ShareNumber
    state: ShareState = ShareState.FOUND
    layout: ShareLayout | None = None
    at_hand: list[tuple[int, Buffer]] = field(factory=list, repr=False)
    asked: set[Range] = field(factory=set, repr=False)
    bad_segments: set[int] = field(factory=set)

    def piece(self, offset: int, length: int) -> Buffer | None:
        """These bytes if they are at hand."""
        for start, data in self.at_hand:
            if start <= offset and offset + length <= start + len(data):
                return memoryview(data)[offset - start : offset - start + length]
        return None

    def pieces(self, ranges: Iterable[Range]) -> list[Buffer] | None:
        """All of these ranges if they are at hand."""
        found = [self.piece(offset, length) for offset, length in ranges]
        return None if any(piece is None for piece in found) else [piece for piece in found if piece is not None]

    def take(self, ranges: Sequence[Range], pieces: Sequence[Buffer]) -> None:
        """Keep the bytes that a server sent for these ranges."""
        self.at_hand += [(offset, piece) for (offset, _), piece in zip(ranges, pieces, strict=False) if len(piece) > 0]

    def forget(self, offset: int, length: int) -> None:
        """Free the pieces that contain these bytes, of a share that needs no more proof."""
        if self.state is ShareState.READY:
            self.at_hand = [
                (start, data) for start, data in self.at_hand if offset < start or start + len(data) < offset + length
            ]


def prove_share(share: HeldShare, verifier: FileVerifier) -> None:
    """Prove as much of a share as the bytes at hand allow. It becomes READY once the root of its block tree is proven.

    IntegrityError, FormatError: the share is false or malformed. UnknownVersionError: its version is unknown.
    DamagedFileError: the file itself is damaged, on every server.
    """
    if share.layout is None:
        start = max((len(data) for offset, data in share.at_hand if offset == 0), default=0)
        share.layout = parse_header(share.piece(0, min(MAX_HEADER_SIZE, start)) or b"")
    if verifier.geometry is None:
        _prove_ueb(share, share.layout, verifier)
    if verifier.geometry is None:
        return
    if not verifier.has_root(share.number):
        chain = share.piece(share.layout.chain_offset, share.layout.chain_size)
        if chain is None:
            return
        verifier.accept_chain(share.number, chain)
    share.state = ShareState.READY


def _prove_ueb(share: HeldShare, layout: ShareLayout, verifier: FileVerifier) -> None:
    field_size = layout.length_field_size
    length_field = share.piece(layout.ueb_offset, field_size)
    if length_field is None:
        return
    data = share.piece(layout.ueb_offset + field_size, parse_ueb_length(layout, length_field))
    if data is None:
        return
    try:
        verifier.accept_ueb(data)
    except FormatError as error:
        # These bytes are proven but malformed. They are the same in every share, so no other share helps.
        raise DamagedFileError(str(error)) from error


def well_founded(reports: Sequence[R], verifier: FileVerifier | None) -> list[R]:
    """The reports that can be blamed on the share.

    Until some extension block is proven, a mismatch may just as well be the fault of a mistyped capability.
    """
    if verifier is None or verifier.geometry is not None:
        return list(reports)
    return [
        report
        for report in reports
        if not (isinstance(report, AdviseCorrupt) and report.reason.startswith(UEB_MISMATCH))
    ]


def missing_ranges(share: HeldShare, verifier: FileVerifier, *, with_ueb: bool) -> list[Range]:
    """What to fetch next to prove a share whose layout is known.

    with_ueb: fetch the extension block from it, unless that is proven. FormatError: the missing bytes were
    requested before and did not come.
    """
    layout = share.layout
    assert layout is not None
    wants: list[Range] = []
    if not verifier.has_root(share.number) and share.piece(layout.chain_offset, layout.chain_size) is None:
        wants.append((layout.chain_offset, layout.chain_size))
    if verifier.geometry is None and with_ueb:
        wants.append((layout.ueb_offset, layout.length_field_size + limits.MAX_UEB_SIZE))
    if not share.asked.isdisjoint(wants):
        raise FormatError("the share is cut short")
    return wants
