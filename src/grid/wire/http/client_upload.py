"""An upload to one server over HTTP. [spec wire 17, 18]

A share closes itself on the server with its last octet, so closing is only to know that it has; octets that were
never written are sent as zeros then, which is what they are by Foolscap. It does not end with a connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grid.errors import DataTooLargeError, PeerError, PeerGoneError
from grid.ports import Buffer, ShareNumber, ShareWrite, StorageIndex
from grid.wire.http import batched_requests, single_requests
from grid.wire.http.asking import Asker, all_of
from grid.wire.http.link import Session
from grid.wire.http.ranges import Coverage

_ZEROS = bytes(256 * 1024)


class HttpUpload:
    """The new shares that a server has agreed to take, each of `size` octets."""

    def __init__(
        self,
        asker: Asker,
        session: Session,
        index: StorageIndex,
        secret: bytes,
        share_numbers: frozenset[ShareNumber],
        size: int,
    ) -> None:
        self._asker = asker
        self._session = session
        self._index = index
        self._secret = secret
        self._size = size
        self._share_numbers = share_numbers
        self._open = {number: Coverage(size) for number in share_numbers}

    @property
    def share_numbers(self) -> frozenset[ShareNumber]:
        """The shares allocated."""
        return self._share_numbers

    async def write(self, writes: Sequence[ShareWrite]) -> None:
        """Store all of the writes: one request, or with 1.20 one for each run of octets, shares side by side."""
        self._require_open(write.share_number for write in writes)
        wanted = [write for write in writes if write.size]
        if any(write.offset + write.size > self._size for write in wanted):
            raise DataTooLargeError(f"a write past the end of a share of {self._size} octets")
        if not wanted:
            return
        if self._session.version.batched_writes:
            complete = await batched_requests.write_shares(
                self._asker, self._session.entrance, self._index, self._secret, wanted
            )
        else:
            complete = await self._write_singly(wanted)
        for write in wanted:
            coverage = self._open.get(write.share_number)
            if coverage is not None:
                coverage.add(write.offset, write.offset + write.size)
        for number in complete:
            self._open.pop(number, None)

    async def _write_singly(self, writes: Sequence[ShareWrite]) -> frozenset[ShareNumber]:
        runs = _runs(writes)

        async def write_runs(number: ShareNumber) -> bool:
            complete = False
            for offset, pieces in runs[number]:
                complete = await single_requests.write_share(
                    self._asker, self._session.entrance, self._index, self._secret, ShareWrite(number, offset, pieces)
                )
            return complete

        numbers = list(runs)
        outcomes = await all_of(write_runs(number) for number in numbers)
        return frozenset(number for number, complete in zip(numbers, outcomes, strict=True) if complete)

    async def close(self, share_numbers: Iterable[ShareNumber]) -> None:
        """Return when these shares are finished; PeerError if the server does not say so."""
        numbers = set(share_numbers)
        unknown = numbers - self._share_numbers
        if unknown:
            raise PeerError(f"{self._asker.where} did not allocate shares {sorted(unknown)}")
        for number in sorted(numbers & self._open.keys()):
            for begin, end in self._open[number].missing():
                await self._fill(number, begin, end)
        unfinished = sorted(numbers & self._open.keys())
        if unfinished:
            raise PeerError(f"{self._asker.where} does not say that shares {unfinished} are complete")

    async def _fill(self, number: ShareNumber, begin: int, end: int) -> None:
        while begin < end:
            size = min(end - begin, len(_ZEROS))
            await self.write([ShareWrite(number, begin, [memoryview(_ZEROS)[:size]])])
            begin += size

    async def abort(self, share_numbers: Iterable[ShareNumber] | None = None) -> None:
        """Give up what is open of these; a server that cannot be reached does so by itself in half an hour."""
        numbers = self._open.keys() & set(self._open if share_numbers is None else share_numbers)
        for number in numbers:
            del self._open[number]
        try:
            await single_requests.abort_shares(self._asker, self._session.entrance, self._index, self._secret, numbers)
        except PeerGoneError:
            return

    def _require_open(self, share_numbers: Iterable[ShareNumber]) -> None:
        closed = set(share_numbers) - self._open.keys()
        if closed:
            raise PeerError(f"shares {sorted(closed)} are not being uploaded to {self._asker.where}")


def _runs(writes: Sequence[ShareWrite]) -> Mapping[ShareNumber, list[tuple[int, list[Buffer]]]]:
    """(offset, pieces) of each run of consecutive octets, per share in the order given."""
    runs: dict[ShareNumber, list[tuple[int, list[Buffer]]]] = {}
    ends: dict[ShareNumber, int] = {}
    for write in writes:
        of_share = runs.setdefault(write.share_number, [])
        if ends.get(write.share_number) == write.offset:
            of_share[-1][1].extend(write.pieces)
        else:
            of_share.append((write.offset, list(write.pieces)))
        ends[write.share_number] = write.offset + write.size
    return runs
