"""Copies objects by linking the same file again, so no contents move."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from attrs import evolve

from grid.gateway.http.answers import Answer, AnyAnswer
from grid.s3.checksums import named_algorithm
from grid.s3.conditions import Conditions
from grid.s3.documents import XML, document, text
from grid.s3.door import Call
from grid.s3.faults import S3Fault, not_implemented
from grid.s3.object_info import StoredObject
from grid.s3.objects import described, link_object
from grid.s3.times import iso_time


async def copy_object(call: Call) -> AnyAnswer:
    """Link a file under another key."""
    bucket = await call.bucket()
    bucket.require_writable()
    source_name, source_key = copy_source(call)
    found = await source_of(call, source_name, source_key)
    if found.size is None:
        raise not_implemented("copies of mutable files")
    replaces = _directive(call, "x-amz-metadata-directive") == "REPLACE"
    if not replaces and (source_name, source_key) == (call.bucket_name, call.key):
        raise S3Fault("InvalidRequest", "A copy of an object onto itself has to replace its metadata.")
    given = described(call)
    kept = given if replaces else found.info
    tags = given.tags if _directive(call, "x-amz-tagging-directive") == "REPLACE" else found.info.tags
    if (algorithm := call.header("x-amz-checksum-algorithm")) is not None:
        named_algorithm(algorithm)
    info = evolve(
        found.info, modified=given.modified, nonce=given.nonce, headers=kept.headers, user=kept.user, tags=tags
    )
    await link_object(bucket, call.key, found.target, info, Conditions.of(call.header))
    body = document("CopyObjectResult", text("LastModified", iso_time(info.modified)), text("ETag", f'"{info.etag}"'))
    return Answer(200, XML, body)


def copy_source(call: Call) -> tuple[str, str]:
    """The bucket and key of a copy's source; S3Fault."""
    given = (call.header("x-amz-copy-source") or "").encode("utf-8", "surrogateescape")
    path, _, version = given.partition(b"?")
    if version not in (b"", b"versionId=null"):
        raise not_implemented("versions of objects")
    try:
        name, _, key = unquote_to_bytes(path).decode("utf-8").removeprefix("/").partition("/")
    except UnicodeDecodeError:
        name = key = ""
    if not name or not key:
        raise S3Fault("InvalidArgument", "x-amz-copy-source names no object.")
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
        raise S3Fault("InvalidArgument", f"{name} is COPY or REPLACE.")
    return value
