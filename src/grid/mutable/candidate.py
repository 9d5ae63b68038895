"""A share that was seen and is not proven yet. Pure; part of the map plan."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from grid.errors import FormatError
from grid.mutable.prefix import Prefix
from grid.mutable.table import ShareTable
from grid.mutable.versions import Sighting, cut_out
from grid.ports import Buffer, Range, ServerId, ShareNumber


@define(kw_only=True, eq=False)
class Candidate:
    """A share that has a header; its keys and signature are still to be seen.

    besides: what else came in the same answer as its head. pieces: what came later.
    """

    server_id: ServerId
    number: ShareNumber
    prefix: Prefix
    table: ShareTable
    head: Buffer = field(repr=False)
    besides: Mapping[Range, Buffer] = field(factory=dict, repr=False)
    pieces: dict[Range, Buffer] = field(factory=dict, repr=False)

    @classmethod
    def of_sighting(cls, sighting: Sighting) -> Candidate:
        """The share of a sighting, of which more is to be seen."""
        return cls(
            server_id=sighting.server_id,
            number=sighting.number,
            prefix=sighting.prefix,
            table=sighting.table,
            head=sighting.head,
            besides=sighting.pieces,
        )

    def sighting(self) -> Sighting:
        """The share, when its prefix is proven."""
        return Sighting(
            server_id=self.server_id,
            number=self.number,
            prefix=self.prefix,
            table=self.table,
            head=self.head,
            pieces=self.besides,
        )

    def get(self, wanted: Range) -> Buffer | None:
        """Those octets, if they have come."""
        piece = cut_out(self.head, self.besides, wanted)
        return piece if piece is not None else cut_out(b"", self.pieces, wanted)

    def require(self, wanted: Range) -> bytes:
        """Those octets; FormatError if they have not come."""
        octets = self.get(wanted)
        if octets is None:
            raise FormatError("the share is cut short")
        return bytes(octets)
