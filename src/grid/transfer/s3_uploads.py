"""Multipart uploads to S3 that a later process resumes by their parts. [decision 356]

obstore does not tell the ID of an upload, so an upload of obstore ends with its process. It owns the five requests of
such an upload, signed with the same credentials, and what is recorded of it. Requests run on threads.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import urllib.request
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from grid.codec.buffers import unwiped
from grid.codec.isal import quick_crc32
from grid.errors import GridError
from grid.ports import Buffer
from grid.s3.signature import ALGORITHM, Pairs, RequestHead, Scope, encode, request_text, sign, signing_key
from grid.transfer.digest import BLOCK
from grid.transfer.ends import Body, EndError, KeptPart, NotThereError, PassingError, SourceChangedError, first_error
from grid.transfer.object_errors import of_answer
from grid.transfer.partial_files import can_resume, of_resumed
from grid.values import field, frozen

if TYPE_CHECKING:
    import urllib3

PART_SIZE = 8 * 2**20
PARTS_AT_ONCE = 4
MAX_PARTS = 10_000
"""Parts of an S3 upload."""

SILENCE_S = 60.0
TRIES = 3
PAUSE_S = 0.5
MAX_ANSWER = 2**20
LISTED_AT_ONCE = 200
"""Objects of a page of a listing, so that it is shorter than MAX_ANSWER whatever their keys are."""

CHECKSUM = "x-amz-checksum-crc32"
_CHECKSUMS = {"x-amz-checksum-algorithm": "CRC32", "x-amz-checksum-type": "FULL_OBJECT"}
"""Headers by which the server keeps our checksum of an object. It would compute one that takes longer."""

_MISUNDERSTOOD = re.compile("<Code>(InvalidArgument|InvalidRequest|NotImplemented)</Code>")
_OTHER_WAYS = re.compile(
    "AWS_(SERVER_SIDE_|SSE_|VIRTUAL_HOSTED_|S3_EXPRESS|SKIP_SIGNATURE|UNSIGNED_|REQUEST_PAYER|CHECKSUM_|CONDITIONAL_)"
)
"""Variables for which obstore sends other requests than those here."""


@frozen(kw_only=True)
class Account:
    """The server and the keys of requests. endpoint: scheme, host, and perhaps a path."""

    endpoint: str
    region: str
    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


def part_size_of(size: int) -> int:
    """Bytes of each part but the last of an object; whole MiBs."""
    return max(PART_SIZE, -(-size // (MAX_PARTS * BLOCK)) * BLOCK)


def open_uploads(bucket: str, arguments: Mapping[str, Any]) -> S3Uploads | None:
    """The uploads of a bucket; None if keys, proxies or options are such that only obstore can send.

    arguments: those for obstore.
    """
    keys: Mapping[str, str] = os.environ
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    if "access_key_id" in arguments:
        keys, names = arguments, ("access_key_id", "secret_access_key", "session_token")
    access_key, secret_key, session_token = (keys.get(name, "") for name in names)
    endpoint = str(arguments.get("endpoint") or f"https://s3.{arguments['region']}.amazonaws.com")
    parts = urlsplit(endpoint)
    is_proxied = parts.scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(parts.hostname or "")
    if not (access_key and secret_key and parts.hostname) or is_proxied or any(map(_OTHER_WAYS.match, os.environ)):
        return None
    account = Account(
        endpoint=endpoint.rstrip("/"),
        region=str(arguments["region"]),
        access_key=access_key,
        secret_key=secret_key,
        session_token=session_token,
    )
    return S3Uploads(account, bucket)


def _import_urllib3() -> None:
    with suppress(ImportError):  # The first request says so.
        import_module("urllib3")


class _MisunderstoodError(EndError):
    """The server does not know all that was asked, for example checksums."""


@frozen
class _Answer:
    """What matters of an answer. algorithm: of the checksums that the server will keep."""

    text: str
    tag: str
    algorithm: str


class S3Uploads:
    """The requests of multipart uploads."""

    def __init__(self, account: Account, bucket: str) -> None:
        self._account, self._bucket = account, bucket
        self.slots = asyncio.Semaphore(PARTS_AT_ONCE)
        """Of parts in transit, for all uploads together."""
        self._connections: urllib3.PoolManager | None = None
        self._names_checksums = os.environ.get("AWS_REQUEST_CHECKSUM_CALCULATION") != "when_required"

    def prepare(self) -> None:
        """Import on a thread what requests need, which takes tens of milliseconds, while the other end is being opened."""
        with suppress(RuntimeError):  # The system has no thread for it: the first request imports it.
            Thread(target=_import_urllib3, daemon=True).start()

    def close(self) -> None:
        """Close idle connections."""
        if self._connections is not None:
            self._connections.clear()

    async def begin(self, key: str, headers: Mapping[str, str]) -> tuple[str, bool]:
        """Begin an upload; return its ID, and whether its parts need checksums. Like all of these: NotThereError, PassingError, EndError."""
        if self._names_checksums and quick_crc32() is not None:
            try:
                return await self._begin(key, {**headers, **_CHECKSUMS})
            except _MisunderstoodError:
                self._names_checksums = False
        return await self._begin(key, headers)

    async def _begin(self, key: str, headers: Mapping[str, str]) -> tuple[str, bool]:
        from xml.sax.saxutils import unescape

        answer = await self._try("POST", key, [("uploads", "")], headers)
        found = re.search("<UploadId>([^<>]{1,2000})</UploadId>", answer.text)
        if found is None:
            raise PassingError(f"{self._shown(key)}: the server began no upload")
        return unescape(found[1]), answer.algorithm == _CHECKSUMS["x-amz-checksum-algorithm"]

    async def checksum(self, data: Buffer) -> str:
        """The checksum of a part."""
        return b64encode((await asyncio.to_thread(quick_crc32() or zlib.crc32, data)).to_bytes(4, "big")).decode(
            "ascii"
        )

    async def put_part(self, key: str, upload: str, number: int, data: Buffer, checksum: str = "") -> str:
        """Send a part, counted from 1, with its SHA-256; return its entity tag."""
        query = [("partNumber", str(number)), ("uploadId", upload)]
        return (await self._try("PUT", key, query, {CHECKSUM: checksum} if checksum else {}, data)).tag

    async def complete(self, key: str, upload: str, parts: Sequence[tuple[str, str]]) -> None:
        """Make one object of all parts. parts: their entity tags and checksums, in order."""
        from xml.sax.saxutils import escape

        listed = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(tag)}</ETag>"
            + (f"<ChecksumCRC32>{checksum}</ChecksumCRC32></Part>" if checksum else "</Part>")
            for number, (tag, checksum) in enumerate(parts, start=1)
        )
        document = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
        answer = await self._try("POST", key, [("uploadId", upload)], {}, document)
        if "<CompleteMultipartUploadResult" not in answer.text:  # Errors can follow after the status was sent.
            raise PassingError(f"{self._shown(key)}: the server did not complete the upload")

    async def abort(self, key: str, upload: str) -> None:
        """Drop an upload and its parts, if it is still there."""
        with suppress(NotThereError):
            await self._try("DELETE", key, [("uploadId", upload)], {})

    async def list_page(self, prefix: str, after: str) -> str:
        """The answer that lists objects whose keys begin with the prefix, from those after `after` on."""
        query = [("encoding-type", "url"), ("list-type", "2"), ("max-keys", str(LISTED_AT_ONCE)), ("prefix", prefix)]
        return (await self._try("GET", "", [*query, ("start-after", after)] if after else query, {})).text

    def _shown(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}"

    async def _try(
        self,
        method: str,
        key: str,
        query: Pairs,
        headers: Mapping[str, str],
        body: Buffer = b"",
    ) -> _Answer:
        ask = partial(self._ask, method, key, query, headers, body)
        for attempt in range(TRIES - 1):
            with suppress(PassingError):
                return await asyncio.to_thread(ask)
            await asyncio.sleep(PAUSE_S * 2**attempt)
        return await asyncio.to_thread(ask)

    def _ask(
        self,
        method: str,
        key: str,
        query: Pairs,
        headers: Mapping[str, str],
        body: Buffer,
    ) -> _Answer:
        """Send one request."""
        import urllib3

        if self._connections is None:
            timeout = urllib3.Timeout(connect=SILENCE_S, read=SILENCE_S)
            self._connections = urllib3.PoolManager(maxsize=4 * PARTS_AT_ONCE, timeout=timeout, retries=False)
        url, signed = self._signed(method, key, query, headers, hashlib.sha256(body).digest())
        content: Any = body  # urllib3 sends any buffer as it is.
        try:
            answer = self._connections.request(
                method, url, body=content, headers=signed, preload_content=False, decode_content=False, redirect=False
            )
            try:
                data = answer.read(MAX_ANSWER)
                if len(data) == MAX_ANSWER:
                    answer.close()
            finally:
                answer.release_conn()
        except urllib3.exceptions.HTTPError as error:
            raise PassingError(f"{self._shown(key)}: {type(error).__name__}") from None
        text = data.decode("utf-8", "replace")
        if answer.status == 404:
            raise NotThereError(f"{self._shown(key)}: there is no such upload, or no such bucket")
        if not 200 <= answer.status < 300:
            refusal = of_answer(self._shown(key), answer.status, text)
            raise _MisunderstoodError(str(refusal)) if _MISUNDERSTOOD.search(text) else refusal
        tag = answer.headers.get("ETag", "")
        if method == "PUT" and not (tag and tag.isascii() and tag.isprintable()):
            raise PassingError(f"{self._shown(key)}: the server sent no entity tag")
        return _Answer(text, tag, answer.headers.get("x-amz-checksum-algorithm", ""))

    def _signed(
        self, method: str, key: str, query: Pairs, headers: Mapping[str, str], body_digest: bytes
    ) -> tuple[str, dict[str, str]]:
        """The URL and the headers of a request, with its signature."""
        account, moment = self._account, f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        endpoint = urlsplit(account.endpoint)
        path = quote(f"{endpoint.path}/{self._bucket}/{key}", safe="/-_.~")
        digest = body_digest.hex()
        sent = {**headers, "host": endpoint.netloc, "x-amz-date": moment, "x-amz-content-sha256": digest}
        if account.session_token:
            sent["x-amz-security-token"] = account.session_token
        scope = Scope(day=moment[:8], region=account.region)
        head = RequestHead(method=method, path=path, query=query, headers=list(sent.items()))
        text = request_text(head, moment, scope, sent, digest)
        sent["authorization"] = (
            f"{ALGORITHM} Credential={account.access_key}/{scope}, SignedHeaders={';'.join(sorted(sent))}, "
            f"Signature={sign(signing_key(account.secret_key, scope), text)}"
        )
        pairs = "&".join(f"{encode(name)}={encode(value)}" if value else encode(name) for name, value in query)
        return f"{endpoint.scheme}://{endpoint.netloc}{path}?{pairs}", sent


@frozen(kw_only=True)
class _Upload:
    """An upload, as it is recorded: its ID and the size of its parts, and the tags and checksums of parts by their offset."""

    id: str
    part_size: int
    has_checksums: bool
    parts: dict[int, tuple[str, str]] = field(factory=dict)

    def token(self, tag: str, checksum: str = "") -> str:
        """The token of a part."""
        return f"{self.id} {self.part_size}{f',{checksum}' if self.has_checksums else ''} {tag}"


async def upload_in_parts(uploads: S3Uploads, key: str, headers: Mapping[str, str], body: Body) -> None:
    """Upload the object; what an earlier attempt sent of it is not sent again. Raises the errors of reading and sending."""
    await abort_outdated(uploads, key, body)
    upload = _recorded(body)
    if upload is None:
        id_, has_checksums = await uploads.begin(key, headers)
        upload = _Upload(id=id_, part_size=part_size_of(body.size), has_checksums=has_checksums)
        body.parts.forget()
        body.parts.keep(KeptPart(offset=body.size, length=0, token=upload.token(""), digest=b""))
    try:
        await _finish(uploads, key, upload, body)
    except BaseException as error:
        if not can_resume(body, error):
            with suppress(GridError):
                await uploads.abort(key, upload.id)
            body.parts.forget()
        raise


async def abort_outdated(uploads: S3Uploads, key: str, body: Body) -> None:
    """Drop what earlier attempts sent of other versions of the file, if the server is there."""
    for token in {_id_of(token) for token in body.parts.outdated()}:
        with suppress(GridError):
            await uploads.abort(key, token)


async def _finish(uploads: S3Uploads, key: str, upload: _Upload, body: Body) -> None:
    try:
        await _send(uploads, key, upload, body)
        await body.require_unchanged()
        await uploads.complete(key, upload.id, [upload.parts[offset] for offset in sorted(upload.parts)])
    except NotThereError as error:  # The server has dropped the upload.
        raise SourceChangedError(f"{error}; starting over") from None


async def _send(uploads: S3Uploads, key: str, upload: _Upload, body: Body) -> None:
    """Send what is missing, in order, a few parts at once."""
    size, position = upload.part_size, 0
    for part in body.parts.load():
        if part.offset == position and part.length:
            body.resume(part)
            position += part.length

    async def put(offset: int, data: Buffer) -> None:
        if offset not in upload.parts:
            checksum = await uploads.checksum(data) if upload.has_checksums else ""
            tag = await uploads.put_part(key, upload.id, offset // size + 1, data, checksum)
            digest = body.digests(offset, len(data))
            token = upload.token(tag, checksum)
            body.parts.keep(KeptPart(offset=offset, length=len(data), token=token, digest=digest))
            upload.parts[offset] = tag, checksum

    failure: GridError | OSError | None = None
    try:
        async with asyncio.TaskGroup() as group:
            try:
                async for data in cut(body.stream(position), body.size - position, size):
                    await uploads.slots.acquire()
                    # A task that is canceled before it begins runs no code of its own.
                    group.create_task(put(position, data)).add_done_callback(lambda _: uploads.slots.release())
                    position += len(data)
                    del data  # Its task has it, until it is sent.
            except (GridError, OSError) as error:  # Of the source: the parts in transit still arrive.
                failure = of_resumed(error, upload.parts)
    except BaseExceptionGroup as errors:
        raise first_error(errors) from None
    if failure is not None:
        raise failure


async def cut(pieces: AsyncIterator[Buffer], length: int, size: int) -> AsyncIterator[memoryview]:
    """Join pieces of `length` bytes in all into parts of `size`; the last one may be shorter. Each byte is copied once."""
    part, filled = unwiped(min(size, length)), 0
    async for piece in pieces:
        rest = memoryview(piece)
        while rest:
            count = min(len(rest), len(part) - filled)
            part[filled : filled + count] = rest[:count]
            rest, filled = rest[count:], filled + count
            if filled == len(part):
                length -= filled
                yield part
                part, filled = unwiped(min(size, length)), 0


def _recorded(body: Body) -> _Upload | None:
    """The upload of an earlier attempt, with the parts that are recorded."""
    found: _Upload | None = None
    for part in body.parts.load():
        id_, _, rest = part.token.partition(" ")
        how, _, tag = rest.partition(" ")
        size, comma, checksum = how.partition(",")
        if not size.isdecimal() or not int(size):
            return None
        this = _Upload(id=id_, part_size=int(size), has_checksums=bool(comma))
        found = found or this
        if (this.id, this.part_size, this.has_checksums) != (found.id, found.part_size, found.has_checksums):
            return None
        if part.length:
            found.parts[part.offset] = tag, checksum
    return found


def _id_of(token: str) -> str:
    return token.partition(" ")[0]
