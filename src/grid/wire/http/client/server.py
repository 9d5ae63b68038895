"""A storage server behind NURLs as a StorageServer: 1.20's, or ours with batched requests.

Cost: the first call takes a TLS handshake and a round trip for the version. After that, find_shares, read_shares,
read_slot and Upload.write take one request if the server offers batches. Otherwise they take one per share and run of
neighboring ranges, in parallel over a few connections, and one more to list shares if needed.
Bytes are copied once when received (to join a range's pieces) and once when sent (by the cipher).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from grid.errors import BadWriteEnablerError, DataTooLargeError, FormatError, PeerError, PeerGoneError, PeerRefusedError
from grid.ports import (
    Allocation,
    Buffer,
    Find,
    LeaseSecrets,
    NewShares,
    Range,
    Runtime,
    ServerIdentity,
    ServerVersion,
    ShareKind,
    ShareNumber,
    SlotAnswer,
    SlotSecrets,
    StorageIndex,
    StoreAnswer,
    TestWrite,
)
from grid.wire.connections.connect_watch import OnQuiet, ignore_quiet
from grid.wire.http.client import batched_requests, single_requests, wide_requests
from grid.wire.http.client.link import Link, Session
from grid.wire.http.client.pool import Address, Pool
from grid.wire.http.client.requester import Access, HttpRequest, Reply, Requester, all_of
from grid.wire.http.client.spread import Direction
from grid.wire.http.client.streams import ReadAhead
from grid.wire.http.client.upload import HttpUpload, UploadTarget
from grid.wire.http.format.answers import parse_allocation, parse_slot_answer
from grid.wire.http.format.authority import CANCEL, RENEW, UPLOAD, WRITE_ENABLER, authorization, plain_authorization
from grid.wire.http.format.bodies import pack_allocation_request, pack_reason, pack_slot_request
from grid.wire.http.format.routes import SLOTS_PATH, pack_path
from grid.wire.locators import Nurl
from grid.wire.packed.find_messages import Found
from grid.wire.queues.shared_messages import ask_together, find_queue
from grid.wire.remote_server import SessionServer, server_name
from grid.wire.status import brief

T = TypeVar("T")

UPLOAD_SECRET_SIZE = 20
_CBOR = ((b"Content-Type", b"application/cbor"),)
_SLOT_ERRORS = {401: BadWriteEnablerError, 413: DataTooLargeError}


class HttpServer(SessionServer[Session]):
    """The StorageServer that NURLs name, reached through a pool that the caller closes."""

    def __init__(
        self,
        identity: ServerIdentity,
        nurls: Sequence[Nurl],
        pool: Pool,
        runtime: Runtime,
        plain: tuple[str, int] | None = None,
        on_quiet: OnQuiet = ignore_quiet,
    ) -> None:
        """plain: host and port to read shares from unencrypted, only at the user's request.

        on_quiet: called when an attempt to connect gets no sign from the server.
        """
        self._runtime = runtime
        self._requester = Requester(pool, server_name(identity), on_quiet)
        accesses = [
            Access(Address(nurl.host.strip("[]"), nurl.port, nurl.spki_hash), authorization(nurl.swissnum))
            for nurl in nurls
            if not nurl.over_tor
        ]
        in_the_clear = None
        if plain is not None and nurls:
            in_the_clear = Access(Address(plain[0].strip("[]"), plain[1], None), plain_authorization(nurls[0].swissnum))
        self._link = Link(self._requester, accesses, in_the_clear, runtime.clock)
        self._ahead = ReadAhead(self._requester, runtime.clock)
        self._slot_reads = find_queue(self._send_slot_reads, runtime.clock)
        super().__init__(identity, self._link, runtime.clock)

    def close(self) -> None:
        """Close the connections; waiting calls fail with PeerGoneError."""
        self._ahead.close()
        super().close()

    async def _renew_version(self, session: Session) -> ServerVersion:
        return await self._watched(session, self._link.ask_version(session))

    async def _find_alone(
        self, session: Session, storage_index: StorageIndex, ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        async def ask(session: Session, access: Access) -> Mapping[ShareNumber, Sequence[Buffer]]:
            if session.version.batched_reads:
                return await wide_requests.find_shares(self._requester, access, storage_index, ranges)
            held = await single_requests.list_shares(self._requester, access, "immutable", storage_index)
            wants = dict.fromkeys(held, ranges)
            if not any(length for _, length in ranges):
                return {number: [b""] * len(ranges) for number in held}
            return await single_requests.read_ranges(self._requester, access, "immutable", storage_index, wants)

        return await self._read(ask)

    async def _send_finds(self, finds: Sequence[Find]) -> Sequence[Found | None]:
        async def ask(session: Session, access: Access) -> Sequence[Found | None]:
            return await batched_requests.find_each(self._requester, access, finds)

        return await self._read(ask)

    async def _send_slot_reads(self, finds: Sequence[Find]) -> Sequence[Found | None]:
        async def ask(session: Session, access: Access) -> Sequence[Found | None]:
            return await batched_requests.find_each(self._requester, access, finds, SLOTS_PATH)

        return await self._read(ask)

    async def read_shares(
        self, storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Read ranges of immutable shares; missing shares are left out."""

        async def ask(session: Session, access: Access) -> Mapping[ShareNumber, Sequence[Buffer]]:
            if session.version.batched_reads:
                return await wide_requests.read_shares(self._requester, access, storage_index, wants)
            return await single_requests.read_ranges(
                self._requester, access, "immutable", storage_index, wants, self._ahead.fetch
            )

        return await self._read(ask)

    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        """Allocate room for new shares."""
        secret = secrets.upload or self._runtime.entropy.random_bytes(UPLOAD_SECRET_SIZE)
        request = HttpRequest(
            method=b"POST",
            path=pack_path(storage_index, "immutable"),
            secrets={**_lease(secrets), UPLOAD: secret},
            headers=_CBOR,
            body=(pack_allocation_request(share_numbers, share_size),),
            repeatable=False,
        )
        session, reply = await self._ask(request)
        if reply.status != 200:
            raise self._requester.refusal(reply)
        try:
            already, allocated = parse_allocation(reply.body)
        except FormatError as error:
            raise self._requester.misbehaved(error) from error
        if not allocated <= share_numbers:
            raise PeerError(f"{self._requester.where} allocated shares that it was not asked for")
        gaps: dict[ShareNumber, list[tuple[int, int]]] = {}
        if secrets.upload is not None:
            left = sorted(share_numbers - already - allocated)
            gaps = await self._find_begun(session, storage_index, secret, left, share_size)
        target = UploadTarget(session=session, index=storage_index, secret=secret)
        upload = HttpUpload(self._requester, target, allocated | gaps.keys(), share_size, gaps)
        return Allocation(already=already, upload=upload, is_lasting=secrets.upload is not None)

    async def _find_begun(
        self, session: Session, index: StorageIndex, secret: bytes, numbers: Sequence[ShareNumber], size: int
    ) -> dict[ShareNumber, list[tuple[int, int]]]:
        """What is missing of each of the shares that an earlier process has begun to upload with this secret."""
        found = await self._watched(
            session,
            all_of(
                single_requests.find_missing(self._requester, session.access, index, secret, number, size)
                for number in numbers
            ),
        )
        return {number: gaps for number, gaps in zip(numbers, found, strict=True) if gaps is not None}

    def _is_quicker_in_steps(self, session: Session, size: int) -> bool:
        # Asking takes one round trip. Over several connections, the shares then arrive two round trips sooner than over one.
        return self._requester.pool.part_count(session.access.address, Direction.UP, size) > 2

    async def _send_stores(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        session = await self._link.session()
        answers = await self._watched(session, batched_requests.store_shares(self._requester, session.access, stores))
        size = sum(new.size for new in stores)
        self._requester.pool.moved(session.access.address, Direction.UP, size)
        return answers

    async def add_lease(self, storage_index: StorageIndex, secrets: LeaseSecrets) -> None:
        """Add or renew the lease on every share of the storage index."""
        path = pack_path(storage_index, "lease")
        _, reply = await self._ask(HttpRequest(method=b"PUT", path=path, secrets=_lease(secrets), body=()))
        self._require(reply, 404)

    async def advise_corrupt(
        self, kind: ShareKind, storage_index: StorageIndex, share_number: ShareNumber, reason: str
    ) -> None:
        """Report to the server that its share is corrupt."""
        path = pack_path(storage_index, kind, share_number, "corrupt")
        _, reply = await self._ask(HttpRequest(method=b"POST", path=path, headers=_CBOR, body=(pack_reason(reason),)))
        self._require(reply, 404)

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Read ranges of mutable shares; all shares if none is named. From a 1.20 server, the ranges are not a snapshot.

        Small questions about all shares of a file share messages.
        """
        if not share_numbers and (await self._link.session()).version.batched_slot_reads:
            found = await ask_together(Find(storage_index, ranges), self._slot_reads)
            if found is not None:
                return found

        async def ask(session: Session, access: Access) -> Mapping[ShareNumber, Sequence[Buffer]]:
            if session.version.batched_reads:
                return await batched_requests.read_slot(self._requester, access, storage_index, share_numbers, ranges)
            numbers = share_numbers
            if not numbers:
                numbers = await single_requests.list_shares(self._requester, access, "mutable", storage_index)
            wants = dict.fromkeys(numbers, ranges)
            return await single_requests.read_ranges(self._requester, access, "mutable", storage_index, wants)

        return await self._read(ask)

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        """Test and, if every test holds, write, as one atomic step."""
        request = HttpRequest(
            method=b"POST",
            path=pack_path(storage_index, "mutable", "read-test-write"),
            secrets={**_lease(secrets.lease), WRITE_ENABLER: secrets.write_enabler},
            headers=_CBOR,
            body=pack_slot_request(writes, ranges),
            repeatable=False,
        )
        _, reply = await self._ask(request)
        if reply.status != 200:
            raise self._requester.refusal(reply, _SLOT_ERRORS)
        try:
            answer = parse_slot_answer(reply.body)
        except FormatError as error:
            raise self._requester.misbehaved(error) from error
        for pieces in answer.data.values():
            if len(pieces) != len(ranges) or any(
                len(piece) > length for piece, (_, length) in zip(pieces, ranges, strict=True)
            ):
                raise self._requester.misbehaved("ranges other than those asked for")
        return answer

    async def _ask(self, request: HttpRequest) -> tuple[Session, Reply]:
        session = await self._link.session()
        return session, await self._watched(session, self._requester.ask(session.access, request))

    async def _read(self, ask: Callable[[Session, Access], Awaitable[T]]) -> T:
        """Run a read, unencrypted if that is wanted and possible."""
        session = await self._link.session()
        if session.plain is not None:
            try:
                return await ask(session, session.plain)
            except (PeerGoneError, PeerRefusedError):
                session.plain = None  # Whatever fails there, the encrypted connection decides.
        return await self._watched(session, ask(session, session.access))

    async def _watched(self, session: Session, work: Awaitable[T]) -> T:
        try:
            return await work
        except PeerGoneError as error:
            self._link.lost(session, brief(error))
            raise

    def _require(self, reply: Reply, *harmless: int) -> None:
        if reply.status >= 300 and reply.status not in harmless:
            raise self._requester.refusal(reply)


def _lease(secrets: LeaseSecrets) -> dict[str, bytes]:
    return {RENEW: secrets.renew, CANCEL: secrets.cancel}
