"""Carries out, through the ports, the requests of the immutable plans. It decides nothing.

It owns the uploads that servers granted to one operation, and aborts those that are left over.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from attrs import evolve
from twisted.internet.defer import Deferred, DeferredLock

from grid.caps import StorageIndex
from grid.engine.performer import BasePerformer
from grid.engine.requests import Request, ServerRequest
from grid.errors import GridError
from grid.immutable.share import requests as r
from grid.immutable.share.encode import Encoder, FinishedEncoding
from grid.immutable.share.layout import share_size
from grid.placement.leases import LeaseMaster
from grid.ports import (
    Allocation,
    Buffer,
    LeaseSecrets,
    NewShares,
    Runtime,
    ServerId,
    ShareNumber,
    ShareWrite,
    Sink,
    Source,
    StorageServer,
    Upload,
)
from grid.runtime import Tasks

ABORT_LIMIT_S = 5.0
"""How long a failed upload tries to abort what it left on servers."""


class UploadTurns:
    """One upload of a file at a time: servers give the room for a share to one upload, and the next one finds the shares."""

    def __init__(self) -> None:
        self._locks: dict[StorageIndex, DeferredLock] = {}

    @asynccontextmanager
    async def turn(self, storage_index: StorageIndex) -> AsyncIterator[None]:
        """Wait until no other upload of this file is running here; the next one begins when the context ends."""
        lock = self._locks.setdefault(storage_index, DeferredLock())
        await lock.acquire()
        try:
            yield
        finally:
            lock.release()
            if not lock.locked:
                self._locks.pop(storage_index, None)


class Performer(BasePerformer):
    """The servers and data of one operation, and the uploads granted to it."""

    kind = "immutable"

    def __init__(
        self,
        servers: Sequence[StorageServer],
        storage_index: StorageIndex,
        runtime: Runtime,
        *,
        leases: LeaseMaster | None = None,
        sink: Sink | None = None,
        source: Source | None = None,
        encoder: Encoder | None = None,
        original_ueb: bytes | None = None,
        lasting: bool = False,
    ) -> None:
        """lasting: whether uploads are begun so that a later process of this client can go on with them."""
        super().__init__(servers, storage_index, runtime, leases=leases, sink=sink, source=source)
        self._encoder = encoder
        self._original_ueb = original_ueb
        self._lasting = lasting
        self._resumable: set[tuple[ServerId, ShareNumber]] = set()
        self._uploads: dict[tuple[ServerId, ShareNumber], Upload] = {}
        self._allocations = Tasks()

    def share_size(self, encoder: Encoder) -> int:
        """Bytes of every share. A repair keeps the size of the original extension block."""
        if self._original_ueb is None:
            return encoder.share_size
        return share_size(encoder.layout, len(self._original_ueb))

    async def abort(self, *, but_lasting: bool = False) -> None:
        """Abort every upload not closed yet, within ABORT_LIMIT_S; never raises. but_lasting: leave those that can go on."""
        tasks = Tasks()
        kept = self._resumable if but_lasting else set()
        for upload, shares in self._take_uploads([key for key in self._uploads if key not in kept]):
            tasks.start(upload.abort(shares))
        if not tasks.count:
            return
        alarm = self._runtime.clock.call_later(ABORT_LIMIT_S, tasks.cancel)
        try:
            await tasks.wait()
        finally:
            alarm.cancel()

    async def _ask(self, server: StorageServer, request: ServerRequest) -> object:
        index = self._storage_index
        match request:
            case r.AskVersion():
                return await server.get_version()
            case r.FindShares():
                return await server.find_shares(index, request.ranges)
            case r.ReadShares():
                return await server.read_shares(index, request.wants)
            case r.Allocate():
                return await self._allocate(server, request)
            case r.StoreShares():
                new = NewShares(storage_index=index, secrets=self._lease(server), shares=request.shares)
                return (await server.store_shares([new]))[0]
            case r.WriteShares():
                await self._write(request)
            case r.AbortUpload():
                await self._abort_server(request.server_id)
            case _:
                return await super()._ask(server, request)
        return None

    async def _work(self, request: Request) -> object:
        run, encoder = self._runtime.cpu.run, self._encoder
        match request:
            case r.MakeTrailers():
                return await run(_trailers, request.finished, request.shares)
            case r.EncodeSegments():
                assert encoder is not None
                return await run(encoder.encode_segments, request.first_segment, request.text)
            case r.AbsorbBatch():
                assert encoder is not None
                return await run(encoder.absorb, request.batch)
            case r.FinishEncoding():
                assert encoder is not None
                return await run(encoder.finish, self._original_ueb)
            case _:
                return await super()._work(request)

    async def _allocate(self, server: StorageServer, request: r.Allocate) -> Allocation:
        """Allocate shares. If the plan stops waiting, whatever the server grants later is aborted."""
        secrets = self._upload_secrets(server)
        given_up: list[bool] = []
        answered: Deferred[Allocation] = Deferred(lambda _: given_up.append(True))

        async def allocate() -> None:
            allocation = await server.allocate(self._storage_index, secrets, request.wanted, request.share_size)
            if given_up:
                await allocation.upload.abort()
                return
            for share in allocation.upload.share_numbers:
                self._uploads[request.server_id, share] = allocation.upload
                if allocation.is_lasting:
                    self._resumable.add((request.server_id, share))
            answered.callback(allocation)

        def failed(error: BaseException) -> None:
            if not given_up and not answered.called:
                answered.errback(error)

        self._allocations.start(allocate(), on_error=failed)
        return await answered

    def _upload_secrets(self, server: StorageServer) -> LeaseSecrets:
        secrets = self._lease(server)
        if not self._lasting:
            return secrets
        assert self._leases is not None
        seed = server.identity.lease_seed
        return evolve(secrets, upload=self._leases.upload_secret_for(self._storage_index, seed))

    async def _write(self, request: r.WriteShares) -> None:
        """Write to the uploads that the shares belong to: one write each, and nearly always one upload."""
        groups: dict[int, tuple[Upload, list[ShareWrite]]] = {}
        for write in request.writes:
            upload = self._upload(request.server_id, write.share_number)
            groups.setdefault(id(upload), (upload, []))[1].append(write)
        for upload, writes in groups.values():
            last = [write for write in writes if write.share_number in request.closing]
            if len(last) < len(writes):
                await upload.write([write for write in writes if write.share_number not in request.closing])
            if last:
                await upload.finish(last)
            for write in last:
                self._uploads.pop((request.server_id, write.share_number), None)

    async def _abort_server(self, server_id: ServerId) -> None:
        """Send all aborts at once, so that the server gets each of them even if the caller stops waiting."""
        tasks = Tasks()
        errors: list[BaseException] = []
        for upload, shares in self._take_uploads([key for key in self._uploads if key[0] == server_id]):
            tasks.start(upload.abort(shares), on_error=errors.append)
        await tasks.wait()
        if errors:
            raise errors[0]

    def _take_uploads(self, keys: Sequence[tuple[ServerId, ShareNumber]]) -> list[tuple[Upload, list[ShareNumber]]]:
        """Remove and return these shares, grouped by upload. Nothing may be written to them afterwards."""
        groups: dict[int, tuple[Upload, list[ShareNumber]]] = {}
        for key in keys:
            upload = self._uploads.pop(key)
            groups.setdefault(id(upload), (upload, []))[1].append(key[1])
        return list(groups.values())

    def _upload(self, server_id: ServerId, share: ShareNumber) -> Upload:
        upload = self._uploads.get((server_id, share))
        if upload is None:
            raise GridError(f"share {share} is no longer being uploaded to server {server_id}")
        return upload


def _trailers(finished: FinishedEncoding, shares: frozenset[ShareNumber]) -> Mapping[ShareNumber, Sequence[Buffer]]:
    return {share: finished.trailer(share) for share in shares}
