"""Operations on a single object: put, get, head and delete."""

from __future__ import annotations

import re
from functools import partial

from attrs import evolve

from grid.caps import ChkCap, DirectoryCap, KnownCap, LitCap, SequenceCap, SliceCap
from grid.directory.metadata import pack_metadata
from grid.errors import GridError
from grid.gateway.http.answers import Answer, AnyAnswer, StreamedAnswer
from grid.gateway.http.ranges_and_tags import ByteRange, RangeBeyondEndError, parse_range
from grid.ports import Sink
from grid.s3.bucket import Above, Bucket
from grid.s3.checksums import default_algorithms
from grid.s3.conditions import Conditions, DeleteConditions, permits_range
from grid.s3.documents import XML, document, element, flag, text
from grid.s3.door import Call
from grid.s3.early_read import EarlyRead
from grid.s3.faults import S3Fault, invalid_argument, not_implemented
from grid.s3.object_info import KEPT_HEADERS, MAX_PARTS, ObjectInfo, StoredObject
from grid.s3.payload import Payload
from grid.s3.permissions import require_same_list
from grid.s3.storing import SoughtPlace, stored_payload
from grid.s3.tagging import header_tags
from grid.s3.times import header_time

MAX_USER_METADATA = 2048
MAX_PARTS_PAGE = 1000

REDIRECT = "x-amz-website-redirect-location"
"""Kept and returned, as S3 does where it does not serve websites."""

Headers = tuple[tuple[str, str], ...]

_USER = "x-amz-meta-"
_ONE_RANGE = re.compile(r"bytes=(?:[0-9]+-[0-9]*|-[0-9]+)")
_USER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
_ATTRIBUTES = frozenset({"ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"})
_REFUSED = {
    "x-amz-server-side-encryption": "server-side encryption by request: everything is encrypted anyway",
    "x-amz-server-side-encryption-customer-algorithm": "keys of customers: everything is encrypted anyway",
    "x-amz-object-lock-mode": "object locks",
    "x-amz-object-lock-retain-until-date": "object locks",
    "x-amz-object-lock-legal-hold": "object locks",
    "x-amz-write-offset-bytes": "appending to objects",
}
"""Headers that request features this door lacks; ignoring them would be wrong."""


async def put_object(call: Call) -> AnyAnswer:
    """Store an object durably."""
    place = SoughtPlace(call)
    bucket = call.door.recall_bucket(call.account, call.bucket_name) or (await place.result())[0]
    bucket.require_writable()
    info = described(call, bucket)
    conditions = Conditions.of(call.header)
    payload = Payload(call, usual=default_algorithms())
    if conditions != Conditions():
        bucket, _ = await place.result()
        conditions.require_put(await bucket.find(call.key))
    async with stored_payload(call, bucket, payload, place) as target:
        info = evolve(
            info,
            etag=payload.md5,
            checksums=payload.checksums,
            checksum_type="FULL_OBJECT" if payload.checksums else "",
        )
        bucket, levels = await place.result()
        bucket.require_writable()
        require_same_list(call, bucket.root)
        await link_object(bucket, call.key, target, info, conditions, Above(levels, place.since))
    said = (("ETag", f'"{info.etag}"'), ("x-amz-object-size", str(payload.size)))
    return Answer(200, "", headers=(*said, *checksum_headers(info)))


async def link_object(
    bucket: Bucket,
    key: str,
    target: KnownCap,
    info: ObjectInfo,
    conditions: Conditions,
    above: Above | None = None,
) -> None:
    """Link the key to the file, if the conditions hold for its current object. above: as for `Bucket.link`.

    An object that this put linked in an earlier attempt is no reason to refuse it: it has the same nonce and the same ETag. An
    upload that is completed twice, with other parts, has only the nonce in common.
    """
    metadata = info.to_metadata(target, {})
    pack_metadata(metadata)

    def describe(before: StoredObject | None) -> dict[str, object]:
        if before is None or (before.info.nonce, before.info.etag) != (info.nonce, info.etag):
            conditions.require_put(before)
        return metadata

    await bucket.link(key, target, describe, above)


def described(call: Call, bucket: Bucket) -> ObjectInfo:
    """The information on a new object of the bucket from a request's headers; S3Fault for what cannot be stored."""
    require_offered(call, bucket.root)
    headers = {name: value for name in (*KEPT_HEADERS, REDIRECT) if (value := call.header(name)) is not None}
    if not headers.get(REDIRECT, "/").startswith(("/", "http://", "https://")):
        raise S3Fault("InvalidRedirectLocation")
    if "content-encoding" in headers:
        parts = [part.strip() for part in headers["content-encoding"].split(",")]
        headers["content-encoding"] = ", ".join(part for part in parts if part and part != "aws-chunked")
        if not headers["content-encoding"]:
            del headers["content-encoding"]
    user: dict[str, str] = {}
    for name, value in call.head.headers:
        if name.startswith(_USER) and _USER_NAME.fullmatch(short := name.removeprefix(_USER)):
            user[short] = f"{user[short]},{value}" if short in user else value
    if (
        sum(len(name) + len(value.encode("utf-8", "surrogateescape")) for name, value in user.items())
        > MAX_USER_METADATA
    ):
        raise S3Fault("MetadataTooLarge")
    if not all(value.isprintable() for value in (*headers.values(), *user.values())):
        raise S3Fault("InvalidRequest", "A header is not text in UTF-8.")
    tags = call.header("x-amz-tagging")
    return ObjectInfo(
        etag="",
        modified=round(call.door.now(), 3),
        nonce=call.door.services.store.runtime.entropy.random_bytes(8).hex(),
        headers=headers,
        user=user,
        tags={} if tags is None else header_tags(tags),
    )


def require_offered(call: Call, root: DirectoryCap | None) -> None:
    """Raise NotImplemented for a header that this door would have to ignore. root: as for `require_same_list`."""
    for name, what in _REFUSED.items():
        if call.header(name) is not None:
            raise not_implemented(what)
    require_same_list(call, root)
    if (call.header("x-amz-storage-class") or "STANDARD") != "STANDARD":
        raise S3Fault("InvalidStorageClass")


async def get_object(call: Call) -> AnyAnswer:
    """Send an object or part of it."""
    number = _wanted_part(call)
    early = _begin_early(call, number) if call.head.method == "GET" else None
    _, found = await call.find()
    services, target, info = call.door.services, found.target, found.info
    services.require_allowed(target)
    if not Conditions.of(call.header).judge(found):
        return Answer(304, "", headers=_identity(info))
    size = found.size if found.size is not None else await services.store.size(target)
    chosen = _chosen(call, found, number, size)
    start, length = (chosen.start, chosen.length) if chosen is not None else (0, size)
    if early is not None and not early.is_of(target, start, length):
        early.cancel()
        early = None
    headers = object_headers(call, info)
    if chosen is not None:
        headers = (*headers, ("Content-Range", chosen.content_range(size)))
    elif (call.header("x-amz-checksum-mode") or "").upper() == "ENABLED":
        headers = (*headers, *checksum_headers(info))
    if number is not None and info.part_count:
        headers = (*headers, ("x-amz-mp-parts-count", str(info.part_count)))

    async def write(sink: Sink) -> None:
        await (early.pass_on(sink) if early is not None else _download(call, target, sink, start, length))

    usual = "application/x-directory" if call.key.endswith("/") else "binary/octet-stream"
    kind = _replaced(call, "content-type") or info.headers.get("content-type", usual)
    return StreamedAnswer(206 if chosen is not None else 200, kind, length, headers, write)


def _begin_early(call: Call, number: int | None) -> EarlyRead | None:
    """Begin to read what the request probably asks for, if that is remembered. None if it asks for no bytes of an immutable file."""
    found = call.door.recall(call.account, call.bucket_name, call.key)
    if found is None or found.size is None or isinstance(found.target, LitCap):
        return None
    try:
        call.door.services.require_allowed(found.target)
        if not Conditions.of(call.header).judge(found):
            return None
        chosen = _chosen(call, found, number, found.size)
    except GridError:
        return None
    start, length = (chosen.start, chosen.length) if chosen is not None else (0, found.size)
    return EarlyRead(partial(_download, call), found.target, start, length, call.tasks) if length else None


async def _download(call: Call, target: KnownCap, sink: Sink, start: int, length: int) -> None:
    """Like `read_object`, but recorded as a download."""
    with call.door.services.history.download(target.storage_index, length):
        await read_object(call, target, sink, start, length)


async def read_object(call: Call, target: KnownCap, sink: Sink, start: int, length: int) -> None:
    """Write bytes of a file to the sink; Forbidden for a blacklisted file, and the errors of a read."""
    services = call.door.services
    services.require_allowed(target)
    if isinstance(target, LitCap):
        await sink.write(target.data[start : start + length])
    elif isinstance(target, ChkCap | SliceCap | SequenceCap):
        await services.open_files.read(target, sink, start, length, services.store.grid.observer)
    else:
        await services.store.read(target, sink, start, length)


def _wanted_part(call: Call) -> int | None:
    """The number of the requested part, None for the whole object or a range; InvalidArgument, InvalidRequest."""
    given = call.parameter("partNumber")
    if given is None:
        return None
    if call.header("range") is not None:
        raise S3Fault("InvalidRequest", "Cannot specify both Range header and partNumber query parameter")
    return part_number(given)


def part_number(given: str) -> int:
    """Parse the number of a part; InvalidArgument."""
    if not (given.isascii() and given.isdigit() and len(given) < 6 and 0 < int(given) <= MAX_PARTS):
        message = f"Part number must be an integer between 1 and {MAX_PARTS}, inclusive."
        raise invalid_argument("partNumber", given, message)
    return int(given)


def _chosen(call: Call, found: StoredObject, number: int | None, size: int) -> ByteRange | None:
    """The bytes that the request asks for, None for all. number: of the part that it names. InvalidRange, InvalidPartNumber."""
    return _range(call, found, size) if number is None else _part_range(found.info, number, size)


def _part_range(info: ObjectInfo, number: int, size: int) -> ByteRange | None:
    """The bytes of a part, None for all; InvalidPartNumber."""
    start, stop = info.part(number) if info.parts else (0, size if number == 1 else 0)
    if stop == start and (size or number > 1):
        raise S3Fault("InvalidPartNumber")
    return ByteRange(start, stop) if size else None


def _range(call: Call, found: StoredObject, size: int) -> ByteRange | None:
    """The requested bytes, None for all; InvalidRange. A header that is not one range is ignored, also one of another version."""
    given = call.header("range") or ""
    if not _ONE_RANGE.fullmatch(given) or not permits_range(call.header("if-range"), found):
        return None
    try:
        if given.removeprefix("bytes=-").strip("0"):
            return parse_range(given, size)
    except RangeBeyondEndError:
        pass
    details = (("RangeRequested", given), ("ActualObjectSize", str(size)))
    raise S3Fault("InvalidRange", details=details, headers=(("Content-Range", f"bytes */{size}"),))


def _identity(info: ObjectInfo) -> Headers:
    return (("ETag", f'"{info.etag}"'), ("Last-Modified", header_time(info.modified)))


def object_headers(call: Call, info: ObjectInfo) -> Headers:
    """An object's headers, some of which parameters may override."""
    kept = (*KEPT_HEADERS[:4], "expires", REDIRECT)
    named = {name.title(): value for name, value in info.headers.items() if name in kept}
    for name in KEPT_HEADERS:
        if name != "content-type" and (value := _replaced(call, name)) is not None:
            named[name.title()] = value
    user = tuple((f"{_USER}{name}", value) for name, value in info.user.items() if _USER_NAME.fullmatch(name))
    tags = (("x-amz-tagging-count", str(len(info.tags))),) if info.tags else ()
    usual = (("Accept-Ranges", "bytes"), ("x-amz-storage-class", "STANDARD"))
    return (*_identity(info), *usual, *named.items(), *user, *tags)


def _replaced(call: Call, name: str) -> str | None:
    """A parameter's override for an answer's header; InvalidArgument."""
    value = call.parameter(f"response-{name}")
    if value is not None and not value.isprintable():
        raise S3Fault("InvalidArgument", f"response-{name} is not a valid header value.")
    return value


def checksum_headers(info: ObjectInfo) -> Headers:
    """The checksums of an object."""
    found = tuple((f"x-amz-checksum-{name}", value) for name, value in info.checksums.items())
    return (*found, ("x-amz-checksum-type", info.checksum_type or "FULL_OBJECT")) if found else ()


def checksum_texts(info: ObjectInfo) -> list[str]:
    """Elements with the checksums of an object or part."""
    return [text(f"Checksum{name.upper()}", value) for name, value in info.checksums.items()]


async def get_attributes(call: Call) -> AnyAnswer:
    """The attributes listed in x-amz-object-attributes."""
    wanted = call.listed("x-amz-object-attributes")
    if not wanted:
        await call.bucket()
        raise S3Fault(
            "InvalidRequest",
            "The x-amz-object-attributes header specifying the attributes to be retrieved is either missing or empty",
        )
    if unknown := [name for name in wanted if name not in _ATTRIBUTES]:
        raise invalid_argument("x-amz-object-attributes", unknown[0], "Invalid attribute name specified.")
    _, found = await call.find()
    info = found.info
    size = found.size if found.size is not None else await call.door.services.store.size(found.target)
    checksums = checksum_texts(info)
    offered = {
        "ETag": text("ETag", info.etag),
        "Checksum": element("Checksum", *checksums, text("ChecksumType", info.checksum_type)) if checksums else "",
        "ObjectParts": _parts_element(call, info) if info.parts else "",
        "StorageClass": text("StorageClass", "STANDARD"),
        "ObjectSize": text("ObjectSize", size),
    }
    body = document("GetObjectAttributesResponse", *(said for name, said in offered.items() if name in wanted))
    return Answer(200, XML, body, headers=_identity(info)[1:])


def _parts_element(call: Call, info: ObjectInfo) -> str:
    """Describe a page of the parts in which an object was uploaded."""
    after = _header_number(call, "x-amz-part-number-marker", 0)
    most = min(_header_number(call, "x-amz-max-parts", MAX_PARTS_PAGE), MAX_PARTS_PAGE)
    shown = range(min(after, info.part_count) + 1, min(after + most, info.part_count) + 1)
    sizes = [stop - start for start, stop in map(info.part, shown)]
    return element(
        "ObjectParts",
        text("PartsCount", info.part_count),
        text("PartNumberMarker", after),
        text("NextPartNumberMarker", shown[-1] if shown else after),
        text("MaxParts", most),
        flag("IsTruncated", most > 0 and shown.stop <= info.part_count),
        *(
            element("Part", text("PartNumber", number), text("Size", size))
            for number, size in zip(shown, sizes, strict=True)
        ),
    )


def _header_number(call: Call, name: str, usual: int) -> int:
    """Parse a header that holds a whole number; InvalidArgument."""
    given = call.header(name)
    if given is None:
        return usual
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise S3Fault("InvalidArgument", f"{name} is not a possible number.")
    return int(given)


async def delete_object(call: Call) -> AnyAnswer:
    """Delete an object; succeeds even if there is none."""
    conditions = DeleteConditions(
        match=call.header("if-match"),
        modified=call.header("x-amz-if-match-last-modified-time"),
        size=call.header("x-amz-if-match-size"),
    )
    await (await call.bucket()).remove(call.key, conditions.require)
    return Answer(204, "")
