"""Operations on multipart uploads: create, upload part, copy part, complete and abort."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence

from attrs import evolve

from grid.caps import ChkCap, KnownCap, LitCap, SequenceCap
from grid.extents.table import Part, pack_table
from grid.gateway.http.answers import Answer, AnyAnswer
from grid.ports import Buffer
from grid.s3.bucket import Bucket
from grid.s3.checksums import FULL_OBJECT, Digests, named_algorithm
from grid.s3.conditions import Conditions
from grid.s3.copying import copy_source, source_of
from grid.s3.documents import MAX_DOCUMENT, XML, document, text
from grid.s3.door import Call
from grid.s3.faults import S3Fault, not_implemented
from grid.s3.joining import (
    WantedPart,
    choose_parts,
    joined_checksum,
    joined_etag,
    parse_wanted,
    pieces_of,
    runs_of,
    single_file,
)
from grid.s3.object_info import MAX_PARTS, ObjectInfo, StoredObject, print_of
from grid.s3.objects import checksum_headers, described, link_object, read_object, store_file, store_payload
from grid.s3.payload import Payload, read_document
from grid.s3.times import iso_time
from grid.s3.uploads import Upload, Uploads

_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{1,18})")
_PLAIN_ETAG = re.compile(r"[0-9a-f]{32}")


async def create_upload(call: Call) -> AnyAnswer:
    """Create an upload."""
    bucket = await call.bucket()
    bucket.require_writable()
    info = described(call)
    algorithm, kind = _checksum_of(call)
    random = call.door.services.store.runtime.entropy.random_bytes(10).hex()
    upload = Upload(
        upload_id=f"{int(1000 * info.modified):012x}{random}",
        key=call.key,
        root=await call.door.services.store.create_directory(),
        info=info,
        algorithm=algorithm,
        checksum_type=kind,
    )
    await Uploads(bucket).begin(upload)
    body = document(
        "InitiateMultipartUploadResult",
        text("Bucket", call.bucket_name),
        text("Key", call.key),
        text("UploadId", upload.upload_id),
    )
    said = (("x-amz-checksum-algorithm", algorithm.upper()), ("x-amz-checksum-type", kind)) if algorithm else ()
    return Answer(200, XML, body, said)


def _checksum_of(call: Call) -> tuple[str, str]:
    """The checksum algorithm of an upload, and whether it covers the whole object; InvalidRequest."""
    named, kind = call.header("x-amz-checksum-algorithm"), call.header("x-amz-checksum-type")
    if named is None:
        if kind is not None:
            raise S3Fault("InvalidRequest", "x-amz-checksum-type requires x-amz-checksum-algorithm.")
        return "", ""
    algorithm = named_algorithm(named)
    usual = "FULL_OBJECT" if algorithm == "crc64nvme" else "COMPOSITE"
    kind = (kind or usual).upper()
    if kind not in ("FULL_OBJECT", "COMPOSITE") or (
        algorithm not in FULL_OBJECT if kind == "FULL_OBJECT" else algorithm == "crc64nvme"
    ):
        raise S3Fault("InvalidRequest", f"The checksum {algorithm.upper()} cannot be of type {kind[:20]}.")
    Digests([algorithm])
    return algorithm, kind


async def put_part(call: Call) -> AnyAnswer:
    """Store a part durably."""
    number = _part_number(call)
    bucket, upload = await named_upload(call)
    payload = Payload(call, algorithms=[upload.algorithm] if upload.algorithm else [])
    target = await store_payload(call, payload)
    info = _part_info(call, payload.md5, payload.checksums)
    await Uploads(bucket).add(upload, number, target, info)
    return Answer(200, "", headers=(("ETag", f'"{info.etag}"'), *checksum_headers(info)[:-1]))


async def copy_part(call: Call) -> AnyAnswer:
    """Make a part of bytes already on the grid. No contents move, unless the upload's checksum must be computed."""
    number = _part_number(call)
    bucket, upload = await named_upload(call)
    source = await source_of(call, *copy_source(call))
    if source.size is None:
        raise not_implemented("copies of mutable files")
    start, stop = _copied_range(call, source.size)
    target = source.target
    if (start, stop) != (0, source.size):
        target = await _file_of(call, await _pieces(call, source.target, start, stop))
    if upload.algorithm:
        digests = _DigestSink(call, upload.algorithm)
        await read_object(call, source.target, digests, start, stop - start)
        info = _part_info(call, digests.found.md5, digests.found.checksums)
    elif target == source.target and _PLAIN_ETAG.fullmatch(source.info.etag):
        info = _part_info(call, source.info.etag, source.info.checksums)
    else:
        info = _part_info(call, print_of(target), {})
    await Uploads(bucket).add(upload, number, target, info)
    return Answer(
        200,
        XML,
        document(
            "CopyPartResult",
            text("LastModified", iso_time(info.modified)),
            text("ETag", f'"{info.etag}"'),
            *checksum_texts(info),
        ),
    )


class _DigestSink:
    """A sink that computes checksums."""

    def __init__(self, call: Call, algorithm: str) -> None:
        self.found = Digests([algorithm])
        self._cpu = call.door.services.store.runtime.cpu

    async def write(self, data: Buffer) -> None:
        """Add bytes."""
        if data:
            await self._cpu.run(self.found.update, data)


def _part_info(call: Call, etag: str, checksums: Mapping[str, str]) -> ObjectInfo:
    return ObjectInfo(etag=etag, modified=round(call.door.now(), 3), checksums=checksums)


def _copied_range(call: Call, size: int) -> tuple[int, int]:
    """The range start .. stop to copy; InvalidArgument, InvalidRange."""
    given = call.header("x-amz-copy-source-range")
    if given is None:
        return 0, size
    found = _RANGE.fullmatch(given)
    if found is None or int(found[1]) > int(found[2]):
        raise S3Fault("InvalidArgument", "x-amz-copy-source-range must have the form bytes=FIRST-LAST.")
    if int(found[2]) >= size:
        raise S3Fault("InvalidRange", "The range ends after the end of the object.")
    return int(found[1]), int(found[2]) + 1


async def _pieces(call: Call, target: KnownCap, start: int, stop: int) -> list[Part]:
    open_files = call.door.services.open_files
    return pieces_of(target, start, stop, await open_files.table(target) if isinstance(target, SequenceCap) else None)


async def _file_of(call: Call, pieces: Sequence[Part]) -> KnownCap:
    """A file of these bytes, for which only a table is stored."""
    only = single_file(pieces)
    if only is not None:
        return only
    data = await call.door.services.store.runtime.cpu.run(pack_table, pieces)

    async def chunks() -> AsyncIterator[bytes]:
        yield data

    table = await store_file(call, len(data), chunks())
    assert isinstance(table, ChkCap | LitCap)
    return SequenceCap(size=sum(piece.length for piece in pieces), table=table)


async def complete_upload(call: Call) -> AnyAnswer:
    """Join the parts to an object; no contents move."""
    bucket = await call.bucket()
    bucket.require_writable()
    conditions = Conditions.of(call.header)
    wanted = parse_wanted(await read_document(call, MAX_DOCUMENT, "CompleteMultipartUpload", own_checksums=False))
    etag, uploads = joined_etag([each.etag for each in wanted]), Uploads(bucket)
    upload = await uploads.find(_upload_id(call), call.key)
    if upload is None:
        # The client may repeat the request because it missed the answer.
        found = await bucket.find(call.key)
        if found is None or found.info.nonce != _upload_id(call) or found.info.etag != etag:
            raise S3Fault("NoSuchUpload")
        return _completed(call, found.info)
    parts = choose_parts(wanted, await uploads.parts(upload))
    info = await _joined_info(call, upload, parts, wanted)
    pieces: list[Part] = []
    for part in parts:
        pieces += await _pieces(call, part.target, 0, part.size or 0)
        single_file(pieces)
    target = await _file_of(call, pieces)
    await link_object(bucket, call.key, target, info, conditions)
    await uploads.remove(upload)
    return _completed(call, info)


async def _joined_info(
    call: Call, upload: Upload, parts: Sequence[StoredObject], wanted: Sequence[WantedPart]
) -> ObjectInfo:
    """The object's information; BadDigest or InvalidRequest if it does not match the request."""
    sizes = [part.size or 0 for part in parts]
    said_size = call.header("x-amz-mp-object-size")
    if said_size is not None and said_size != str(sum(sizes)):
        raise S3Fault("InvalidRequest", "The parts do not add up to x-amz-mp-object-size.")
    checksums = {}
    if upload.algorithm:
        run = call.door.services.store.runtime.cpu.run
        checksums[upload.algorithm] = await run(joined_checksum, upload.algorithm, upload.checksum_type, parts)
    for name, value in checksums.items():
        given = call.header(f"x-amz-checksum-{name}")
        if given is not None and given.partition("-")[0] != value.partition("-")[0]:
            raise S3Fault("BadDigest", f"The object does not match x-amz-checksum-{name}.")
    return evolve(
        upload.info,
        etag=joined_etag([each.etag for each in wanted]),
        modified=round(call.door.now(), 3),
        nonce=upload.upload_id,
        checksums=checksums,
        checksum_type=upload.checksum_type if checksums else "",
        parts=runs_of(sizes),
    )


def _completed(call: Call, info: ObjectInfo) -> Answer:
    return Answer(
        200,
        XML,
        document(
            "CompleteMultipartUploadResult",
            text("Location", f"/{call.bucket_name}/{call.key}"),
            text("Bucket", call.bucket_name),
            text("Key", call.key),
            text("ETag", f'"{info.etag}"'),
            *checksum_texts(info),
            text("ChecksumType", info.checksum_type) if info.checksum_type else "",
        ),
    )


async def abort_upload(call: Call) -> AnyAnswer:
    """Discard an upload and its parts."""
    bucket, upload = await named_upload(call)
    await Uploads(bucket).remove(upload)
    return Answer(204, "")


def checksum_texts(info: ObjectInfo) -> list[str]:
    """Elements with the checksums of an object or part."""
    return [text(f"Checksum{name.upper()}", value) for name, value in info.checksums.items()]


def _part_number(call: Call) -> int:
    number = call.number("partNumber", 0, MAX_PARTS + 1)
    if not 0 < number <= MAX_PARTS:
        raise S3Fault("InvalidArgument", f"A part number must be between 1 and {MAX_PARTS}.")
    return number


def _upload_id(call: Call) -> str:
    return call.parameter("uploadId") or ""


async def named_upload(call: Call, *, writes: bool = True) -> tuple[Bucket, Upload]:
    """The upload that a request names, and its bucket; NoSuchUpload, AccessDenied."""
    bucket = await call.bucket()
    if writes:
        bucket.require_writable()
    upload = await Uploads(bucket).find(_upload_id(call), call.key)
    if upload is None:
        raise S3Fault("NoSuchUpload")
    return bucket, upload
