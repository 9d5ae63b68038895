"""A share that was seen and is not proven yet. Pure; part of the map plan."""

from __future__ import annotations

from attrs import define, field

from grid.errors import FormatError
from grid.mutable.share.versions import Sighting, cut_out
from grid.ports import Buffer, Range


@define(kw_only=True, eq=False)
class Candidate:
    """A share that has a header; its keys and signature are still to be seen.

    sighting: what it is when they prove it. pieces: what came later than its head.
    """

    sighting: Sighting
    pieces: dict[Range, Buffer] = field(factory=dict, repr=False)

    def get(self, wanted: Range) -> Buffer | None:
        """Those bytes, if they have come."""
        piece = self.sighting.at_hand(wanted)
        return piece if piece is not None else cut_out(b"", self.pieces, wanted)

    def require(self, wanted: Range) -> bytes:
        """Those bytes; FormatError if they have not come."""
        data = self.get(wanted)
        if data is None:
            raise FormatError("the share is cut short")
        return bytes(data)
