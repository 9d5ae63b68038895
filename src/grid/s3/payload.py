"""The payload of a request: decoded, hashed and verified before it is stored.

Cost: memory: what the request's body may buffer, and one piece more. CPU: MD5 and the client's checksums, on the pool, while
the piece is stored.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeVar

from grid.gateway.files.uploads import Arriving, spool_body
from grid.gateway.shared.spool import Spool
from grid.ports import Buffer, CpuPool
from grid.runtime import Tasks
from grid.s3.authentication import STREAMING
from grid.s3.aws_chunks import WRONG_LENGTH, AwsChunks
from grid.s3.checksums import Digests, named_algorithm, parse_md5, require_single, stated_checksums
from grid.s3.documents import MAX_DOCUMENT, MAX_ELEMENTS, Element, parse_document
from grid.s3.door import Call
from grid.s3.faults import S3Fault
from grid.s3.signature import UNSIGNED, ChunkSigner

MAX_PUT = 5 * 2**30
"""Bytes that one request may store, as in S3."""

SMALL = 2**15
"""Bytes hashed or parsed directly rather than on the pool."""

LONG = 2**16
"""Bytes of a document from which it needs a turn."""

R = TypeVar("R")


class Hashing:
    """Hashes pieces in order, the last one beside whatever the caller does with it."""

    def __init__(self, cpu: CpuPool, digests: Digests) -> None:
        self._cpu = cpu
        self._digests = digests
        self._tasks = Tasks()
        self._error: BaseException | None = None

    async def add(self, piece: bytes) -> None:
        """Begin with the next piece as soon as the one before it is hashed; raises the errors of the pool."""
        await self.wait()
        if len(piece) <= SMALL:
            self._digests.update(piece)
        else:
            self._tasks.start(self._update(piece), on_error=self._fail)

    async def wait(self) -> None:
        """Return when all pieces are hashed; raises the errors of the pool."""
        await self._tasks.wait()
        if self._error is not None:
            raise self._error

    async def _update(self, piece: bytes) -> None:
        await self._cpu.run(self._digests.update, piece)

    def _fail(self, error: BaseException) -> None:
        self._error = error


class Payload:
    """The bytes of a request's payload. size: their number."""

    def __init__(
        self,
        call: Call,
        most: int = MAX_PUT,
        algorithms: Iterable[str] = (),
        *,
        own_checksums: bool = True,
        usual: Iterable[str] = (),
    ) -> None:
        """S3Fault if the request does not declare its payload, or declares too much.

        algorithms: of additional checksums. own_checksums: whether the checksums in the headers cover these bytes.
        usual: algorithms if the client names none.
        """
        self._call = call
        self._cpu: CpuPool = call.door.services.store.runtime.cpu
        self._decoder = _decoder(call)
        self.size = _size(call, most)
        self._md5 = None if (md5 := call.header("content-md5")) is None else parse_md5(md5)
        self._stated = stated_checksums(call.head.headers) if own_checksums else {}
        if self._stated and (trailing := _trailing(call)):
            require_single((*self._stated, *trailing))
        wanted = {*self._stated, *_trailing(call), *algorithms}
        if (named := call.header("x-amz-sdk-checksum-algorithm")) is not None:
            given = {*self._stated, *_trailing(call)} if own_checksums else set()
            if given and named_algorithm(named) not in given:
                raise S3Fault("InvalidRequest", "Value for x-amz-sdk-checksum-algorithm header is invalid.")
            wanted.add(named_algorithm(named))
        wanted |= set() if wanted else set(usual)
        self._payload_hash = call.claim.payload if call.claim.payload not in STREAMING | {UNSIGNED} else None
        self._digests = Digests(wanted | ({"sha256"} if self._payload_hash else set()))
        self._wanted = wanted

    @property
    def md5(self) -> str:
        """Of all bytes, in hexadecimal, once they have arrived."""
        return self._digests.md5

    @property
    def checksums(self) -> dict[str, str]:
        """The checksums that the client named, once all bytes have arrived."""
        return {name: value for name, value in self._digests.checksums.items() if name in self._wanted}

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes; S3Fault after the last one if they do not match the request."""
        count, hashing = 0, Hashing(self._cpu, self._digests)
        async for raw in self._call.body.chunks():
            piece = raw if self._decoder is None else b"".join(self._decoder.decode(raw))
            count += len(piece)
            await hashing.add(piece)
            yield piece
        await hashing.wait()
        if self._decoder is not None:
            self._decoder.finish()
            trailers = stated_checksums(self._decoder.trailers.items(), "trailing header")
            if set(trailers) != _trailing(self._call):
                raise S3Fault("MalformedTrailerError")
            self._stated |= trailers
        if count != self.size:
            raise S3Fault("IncompleteBody", WRONG_LENGTH)
        self._require()

    async def read(self) -> bytes:
        """Read the whole payload."""
        return b"".join([piece async for piece in self.chunks()])

    def _require(self) -> None:
        self._digests.require(self._md5, self._stated)
        found = self._digests.checksums.get("sha256", "")
        if self._payload_hash is not None and base64.b64decode(found).hex() != self._payload_hash:
            stated = ("ClientComputedContentSHA256", self._payload_hash)
            computed = ("S3ComputedContentSHA256", base64.b64decode(found).hex())
            raise S3Fault("XAmzContentSHA256Mismatch", details=(stated, computed))


async def read_document(call: Call, most: int, name: str, elements: int = MAX_ELEMENTS) -> Element:
    """Read a short document whose root has this name. MalformedXML. most: bytes. elements: their largest number."""
    return await _parse(call, await Payload(call, most).read(), name, elements, lambda root: root)


async def read_long_document(
    call: Call, name: str, elements: int, convert: Callable[[Element], R], *, own_checksums: bool = True
) -> R:
    """Read a document of up to MAX_DOCUMENT bytes, and return what it is converted to; its elements are dropped. MalformedXML.

    A long one is spooled, so that a slow client delays nobody, and waits for its turn. convert: may run on the pool.
    """
    payload, services = Payload(call, MAX_DOCUMENT, own_checksums=own_checksums), call.door.services
    if payload.size <= LONG:
        return await _parse(call, await payload.read(), name, elements, convert)
    with Spool(services.settings.spools, services.store.runtime.cpu) as spool:
        await spool_body(spool, Arriving(size=payload.size, chunks=payload.chunks()), None)
        async with services.stores.documents.one():
            return await _parse(call, await spool.read_at(0, spool.size), name, elements, convert)


async def _parse(call: Call, data: Buffer, name: str, elements: int, convert: Callable[[Element], R]) -> R:
    def work() -> R:
        return convert(parse_document(data, name, elements))

    return work() if len(data) <= SMALL else await call.door.services.store.runtime.cpu.run(work)


def named_checksums(call: Call) -> set[str]:
    """The checksums that a request sends or asks for; InvalidRequest."""
    named = call.header("x-amz-sdk-checksum-algorithm")
    asked = set() if named is None else {named_algorithm(named)}
    return {*stated_checksums(call.head.headers), *_trailing(call)} or asked


def _trailing(call: Call) -> set[str]:
    """The checksums announced for the trailers."""
    names = (call.header("x-amz-trailer") or "").lower().split(",")
    found = {name.strip().removeprefix("x-amz-checksum-") for name in names if name.strip()}
    return {named_algorithm(name) for name in found}


def _decoder(call: Call) -> AwsChunks | None:
    kind = call.claim.payload
    if kind not in STREAMING:
        if call.header("x-amz-trailer") is not None:
            raise S3Fault("InvalidRequest", "Only a body in aws-chunked encoding has trailers.")
        return None
    signer = None
    if kind.startswith("STREAMING-AWS4"):
        signer = ChunkSigner(call.signing_key, call.claim.moment, call.claim.scope)
    return AwsChunks(_decoded_size(call), signer, call.claim.signature, kind.endswith("TRAILER"))


def _decoded_size(call: Call) -> int:
    text = call.header("x-amz-decoded-content-length") or ""
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise S3Fault("MissingContentLength")
    return int(text)


def _size(call: Call, most: int) -> int:
    size = _decoded_size(call) if call.claim.payload in STREAMING else call.body.size
    if size is None:
        raise S3Fault("MissingContentLength")
    if size > most:
        raise S3Fault("EntityTooLarge")
    return size
