"""Stores the payloads of requests: each as a file, or small ones that come together in a pack."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from grid.caps import KnownCap
from grid.extents.pack_writer import is_packed
from grid.gateway.files.uploads import Arriving, NewFile, spool_body, store_new
from grid.gateway.shared.spool import Spool
from grid.runtime import Begun
from grid.s3.bucket import Bucket
from grid.s3.door import Call, Place
from grid.s3.payload import Payload
from grid.values import define

FRESH_S = 1.0
"""How long before the last byte of an object its place may have been sought."""


@define(eq=False)
class SoughtPlace:
    """Where the object of a put goes, sought from `begin` on; NoSuchBucket. since: when that began, by the clock."""

    _call: Call
    _found: Begun[Place] | None = None
    since: float = 0.0

    def begin(self) -> None:
        """Begin to seek it, unless that has begun a moment ago."""
        now = self._call.door.clock.now()
        if self._found is None or now - self.since > FRESH_S:
            self._found, self.since = Begun(self._call.place(), self._call.tasks), now

    async def result(self) -> Place:
        """The place, as last sought."""
        if self._found is None:
            self.begin()
        assert self._found is not None
        return await self._found.result()


@asynccontextmanager
async def stored_payload(call: Call, bucket: Bucket, payload: Payload, place: SoughtPlace) -> AsyncIterator[KnownCap]:
    """Store the payload, verified and durable, in a pack if the door packs objects of its size; the caller links it meanwhile.

    Its place is sought beside that, and again at the last byte if the payload was slow. bucket: probably its own.
    """
    packs, services = call.door.packs, call.door.services
    if packs is None or not is_packed(payload.size):
        place.begin()
        yield await store_file(call, payload.size, _followed(payload.chunks(), place.begin))
        return
    with Spool(services.settings.spools, services.store.runtime.cpu) as spool:
        await spool_body(spool, Arriving(size=payload.size, chunks=payload.chunks()), None)
        async with packs.stored(bucket.root, spool, place.begin) as target:
            yield target


async def _followed(chunks: AsyncIterator[bytes], act: Callable[[], None]) -> AsyncIterator[bytes]:
    """The same bytes; acts after the last one."""
    async for chunk in chunks:
        yield chunk
    act()


async def store_payload(call: Call, payload: Payload) -> KnownCap:
    """Store the request's payload as a new file, verified and durable."""
    return await store_file(call, payload.size, payload.chunks())


async def store_file(call: Call, size: int, chunks: AsyncIterator[bytes]) -> KnownCap:
    """Store these bytes as a new file, durably. Also raises what `chunks` raises after the last byte."""
    services = call.door.services
    body = Arriving(size=size, chunks=chunks)
    with services.history.upload(size=size) as operation:
        cap = await store_new(services.store, services.settings.spools, services.stores, NewFile(), body)
        # A file that is sent on while it arrives takes exactly its bytes, and the verification follows them.
        async for _ in chunks:
            pass
        if cap.storage_index is not None:
            operation.name(cap.storage_index)
    return cap
