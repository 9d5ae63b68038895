"""Copies objects by linking the same file again, so no contents move."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from attrs import evolve

from grid.gateway.http.answers import Answer, AnyAnswer
from grid.ports import Buffer
from grid.s3.accounts import is_bucket_name
from grid.s3.checksums import Digests, named_algorithm
from grid.s3.conditions import Conditions
from grid.s3.documents import XML, document, text
from grid.s3.door import Call
from grid.s3.faults import S3Fault, invalid_argument, not_implemented
from grid.s3.object_info import StoredObject
from grid.s3.objects import REDIRECT, checksum_texts, described, link_object, read_object
from grid.s3.times import iso_time

_BAD_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")


async def copy_object(call: Call) -> AnyAnswer:
    """Link a file under another key. It is read only if the client wants a checksum that is not known."""
    replaces = _directive(call, "x-amz-metadata-directive") == "REPLACE"
    replaces_tags = _directive(call, "x-amz-tagging-directive") == "REPLACE"
    named = call.header("x-amz-checksum-algorithm")
    algorithm = "" if named is None else named_algorithm(named)
    bucket = await call.bucket()
    bucket.require_writable()
    source_name, source_key = copy_source(call)
    found = await source_of(call, source_name, source_key)
    if found.size is None:
        raise not_implemented("copies of mutable files")
    if (
        not replaces
        and algorithm in ("", *found.info.checksums)
        and (source_name, source_key) == (call.bucket_name, call.key)
    ):
        raise S3Fault(
            "InvalidRequest",
            "This copy request is illegal because it is trying to copy an object to itself without changing the"
            " object's metadata, storage class, website redirect location or encryption attributes.",
        )
    given = described(call, bucket)
    kept = given if replaces else found.info
    headers = {name: value for name, value in kept.headers.items() if name != REDIRECT}
    if REDIRECT in given.headers:
        headers[REDIRECT] = given.headers[REDIRECT]
    tags = given.tags if replaces_tags else found.info.tags
    info = evolve(found.info, modified=given.modified, nonce=given.nonce, headers=headers, user=kept.user, tags=tags)
    if algorithm and algorithm not in info.checksums:
        digests = DigestSink(call, algorithm)
        await read_object(call, found.target, digests, 0, found.size)
        info = evolve(info, checksums=digests.found.checksums, checksum_type="FULL_OBJECT")
    await link_object(bucket, call.key, found.target, info, Conditions.of(call.header))
    kind = text("ChecksumType", info.checksum_type or "FULL_OBJECT") if info.checksums else ""
    said = (text("LastModified", iso_time(info.modified)), text("ETag", f'"{info.etag}"'))
    return Answer(200, XML, document("CopyObjectResult", *said, *checksum_texts(info), kind))


class DigestSink:
    """A sink that computes checksums."""

    def __init__(self, call: Call, algorithm: str) -> None:
        self.found = Digests([algorithm])
        self._cpu = call.door.services.store.runtime.cpu

    async def write(self, data: Buffer) -> None:
        """Add bytes."""
        if data:
            await self._cpu.run(self.found.update, data)


def copy_source(call: Call) -> tuple[str, str]:
    """The bucket and key of a copy's source; S3Fault. Blanks that its signature does not cover must be escaped."""
    said = call.header("x-amz-copy-source") or ""
    given = said.encode("utf-8", "surrogateescape")
    path, _, version = given.partition(b"?")
    if version not in (b"", b"versionId=null"):
        raise not_implemented("versions of objects")
    shown = given.decode("utf-8", "replace")
    try:
        name, _, key = unquote_to_bytes(path).decode("utf-8").removeprefix("/").partition("/")
    except UnicodeDecodeError:
        raise invalid_argument("x-amz-copy-source", shown, "Invalid copy source encoding") from None
    if _BAD_PERCENT.search(path) or "  " in said or said != said.strip():
        raise invalid_argument("x-amz-copy-source", shown, "Invalid copy source encoding")
    if not is_bucket_name(name):
        raise invalid_argument("x-amz-copy-source", shown, "Invalid copy source bucket name")
    if not key:
        raise invalid_argument("x-amz-copy-source", key, "Invalid copy source object key")
    return name, key


async def source_of(call: Call, bucket_name: str, key: str) -> StoredObject:
    """The source object of a copy; NoSuchKey, PreconditionFailed."""
    bucket = await call.door.bucket(call.account, bucket_name)
    found = await bucket.find(key)
    if found is None:
        raise S3Fault("NoSuchKey")
    Conditions.of(call.header, "x-amz-copy-source-").require(found)
    return found


def _directive(call: Call, name: str) -> str:
    value = call.header(name) or "COPY"
    if value not in ("COPY", "REPLACE"):
        raise invalid_argument(name, value, f"Unknown {name.split('-')[2]} directive.")
    return value
