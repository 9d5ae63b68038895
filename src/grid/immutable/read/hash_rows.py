"""Fetches and proves the rows of the two per-segment hash trees that a read's batches need.

Part of the get plan. A chunk of a row is fetched once per share number (block hashes) or once per file
(crypttext hashes), with the first blocks that need it. A late one is also requested from another share.
"""

from __future__ import annotations

from collections.abc import Sequence

from grid.engine.lateness import PendingRead
from grid.errors import FormatError, GridError, IntegrityError
from grid.immutable.read.held_share import HeldShare, Peer, ShareState
from grid.immutable.share.verify import FileVerifier, LeafRows
from grid.ports import Buffer, Range, ShareNumber
from grid.values import define


@define(kw_only=True, eq=False)
class RowWant:
    """One chunk of one tree, as stored in one share. number None: the crypttext tree."""

    share: HeldShare
    number: ShareNumber | None
    chunk: int
    ranges: list[Range]
    watch: PendingRead[Peer] | None = None


class RowFetcher:
    """Which rows are proven, and which are on their way."""

    def __init__(self, verifier: FileVerifier) -> None:
        self._verifier = verifier
        self._pending: dict[tuple[ShareNumber | None, int], list[RowWant]] = {}

    def proven(self, number: ShareNumber | None, chunk: int) -> bool:
        """Whether the chunk of this tree is proven."""
        return self._rows(number).has(chunk)

    def late_watch(self, number: ShareNumber, chunk: int) -> PendingRead[Peer] | None:
        """The watch of a row that is overdue; None if it has come or may still be on time."""
        pending = self._pending.get((number, chunk), ())
        if not pending or self.proven(number, chunk) or self._awaited(number, chunk, None):
            return None
        return pending[-1].watch

    def wants(self, shares: Sequence[HeldShare], chunk: int) -> tuple[list[RowWant], list[tuple[HeldShare, GridError]]]:
        """What to do before runs of these shares can be opened: (rows to fetch now, shares whose row at hand is false)."""
        wants: list[RowWant] = []
        false: list[tuple[HeldShare, GridError]] = []
        for number, share in [*((share.number, share) for share in shares), *((None, share) for share in shares)]:
            if self._rows(number).has(chunk) or self._awaited(number, chunk, share):
                continue
            want = self._want(share, number, chunk)
            pieces = share.pieces(want.ranges)
            if pieces is None:
                self._pending.setdefault((number, chunk), []).append(want)
                wants.append(want)
                continue
            error = self.accept(want, pieces)
            if error is not None:
                false.append((share, error))
        return wants, false

    def accept(self, want: RowWant, pieces: Sequence[Buffer]) -> GridError | None:
        """Prove a row that was read. Returns the error if the share's writer did not store it."""
        self.ended(want)
        try:
            nodes = self._verifier.row_ranges(want.chunk).nodes(list(pieces))
            self._rows(want.number).accept(want.chunk, pieces[0], nodes)
        except IntegrityError as error:
            return error
        except FormatError as error:
            return IntegrityError(str(error))
        return None

    def ended(self, want: RowWant) -> None:
        """Note that a row was answered or that its request failed."""
        pending = self._pending.get((want.number, want.chunk), [])
        if want in pending:
            pending.remove(want)

    def _awaited(self, number: ShareNumber | None, chunk: int, share: HeldShare | None) -> bool:
        """Whether the row is on its way from this share, or is on time from another."""
        pending = [
            want for want in self._pending.get((number, chunk), ()) if want.share.state is not ShareState.DROPPED
        ]
        return any(want.share is share or want.watch is None or not want.watch.late for want in pending)

    def _rows(self, number: ShareNumber | None) -> LeafRows:
        if number is not None:
            return self._verifier.block_rows(number)
        assert self._verifier.crypttext_rows is not None
        return self._verifier.crypttext_rows

    def _want(self, share: HeldShare, number: ShareNumber | None, chunk: int) -> RowWant:
        assert share.layout is not None
        tree = share.layout.crypttext_tree_offset if number is None else share.layout.block_tree_offset
        return RowWant(share=share, number=number, chunk=chunk, ranges=self._verifier.row_ranges(chunk).ranges(tree))
