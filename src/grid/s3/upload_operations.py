"""Operations on multipart uploads: create, upload part, copy part, complete and abort."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence

from attrs import evolve

from grid.caps import ChkCap, KnownCap, LitCap, SequenceCap
from grid.extents.table import Part, pack_table
from grid.gateway.http.answers import Answer, AnyAnswer
from grid.s3.bucket import Bucket
from grid.s3.checksums import FULL_OBJECT, Digests, mismatch, named_algorithm, named_in, require_single
from grid.s3.conditions import Conditions, DeleteConditions
from grid.s3.copying import DigestSink, copy_source, source_of
from grid.s3.documents import XML, document, text
from grid.s3.door import Call
from grid.s3.faults import S3Fault, invalid_argument, not_implemented
from grid.s3.joining import (
    MAX_ELEMENTS,
    WantedPart,
    choose_parts,
    joined_checksum,
    joined_etag,
    parse_wanted,
    pieces_of,
    require_checksums,
    runs_of,
    single_file,
)
from grid.s3.object_info import ObjectInfo, StoredObject, print_of
from grid.s3.objects import (
    checksum_headers,
    checksum_texts,
    described,
    link_object,
    part_number,
    read_object,
)
from grid.s3.payload import Payload, named_checksums, read_long_document
from grid.s3.storing import store_file, store_payload
from grid.s3.times import iso_time
from grid.s3.uploads import Upload, Uploads

_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{1,18})")
_PLAIN_ETAG = re.compile(r"[0-9a-f]{32}")


async def create_upload(call: Call) -> AnyAnswer:
    """Create an upload."""
    bucket = await call.bucket()
    bucket.require_writable()
    info = described(call, bucket)
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
    if kind is not None and kind.upper() not in ("FULL_OBJECT", "COMPOSITE"):
        raise S3Fault("InvalidRequest", "Value for x-amz-checksum-type header is invalid.")
    if named is None:
        if kind is not None:
            message = "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header."
            raise S3Fault("InvalidRequest", message)
        return "", ""
    algorithm = named_algorithm(named)
    usual = "FULL_OBJECT" if algorithm == "crc64nvme" else "COMPOSITE"
    kind = (kind or usual).upper()
    if algorithm not in FULL_OBJECT if kind == "FULL_OBJECT" else algorithm == "crc64nvme":
        message = f"The {kind} checksum type cannot be used with the {algorithm} checksum algorithm."
        raise S3Fault("InvalidRequest", message)
    Digests([algorithm])
    return algorithm, kind


async def put_part(call: Call) -> AnyAnswer:
    """Store a part durably."""
    number = part_number(call.parameter("partNumber") or "")
    bucket, upload = await named_upload(call)
    _require_same_algorithm(call, upload)
    payload = Payload(call, algorithms=[upload.algorithm] if upload.algorithm else [])
    target = await store_payload(call, payload)
    info = _part_info(call, payload.md5, payload.checksums)
    await Uploads(bucket).add(upload, number, target, info)
    return Answer(200, "", headers=(("ETag", f'"{info.etag}"'), *checksum_headers(info)[:-1]))


async def copy_part(call: Call) -> AnyAnswer:
    """Make a part of bytes already on the grid. No contents move, unless the upload's checksum must be computed."""
    number = part_number(call.parameter("partNumber") or "")
    bucket, upload = await named_upload(call)
    source = await source_of(call, *copy_source(call))
    if source.size is None:
        raise not_implemented("copies of mutable files")
    start, stop = _copied_range(call, source.size)
    target = source.target
    if (start, stop) != (0, source.size):
        target = await _file_of(call, await _pieces(call, source.target, start, stop))
    if upload.algorithm:
        digests = DigestSink(call, upload.algorithm)
        await read_object(call, source.target, digests, start, stop - start)
        info = _part_info(call, digests.found.md5, digests.found.checksums)
    elif target == source.target and _PLAIN_ETAG.fullmatch(source.info.etag):
        info = _part_info(call, source.info.etag, {})
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


def _part_info(call: Call, etag: str, checksums: Mapping[str, str]) -> ObjectInfo:
    return ObjectInfo(etag=etag, modified=round(call.door.now(), 3), checksums=checksums)


def _copied_range(call: Call, size: int) -> tuple[int, int]:
    """The range start .. stop to copy; InvalidArgument, InvalidRange."""
    given = call.header("x-amz-copy-source-range")
    if given is None:
        return 0, size
    found = _RANGE.fullmatch(given)
    if found is None or int(found[1]) > int(found[2]):
        message = (
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the"
            " zero-based offsets of the first and last bytes to copy"
        )
        raise invalid_argument("x-amz-copy-source-range", given, message)
    if int(found[2]) >= size:
        raise S3Fault("InvalidRange", f"Range specified is not valid for source object of size: {size}")
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
    _require_kind(call, None)
    wanted = await read_long_document(call, "CompleteMultipartUpload", MAX_ELEMENTS, parse_wanted, own_checksums=False)
    etag, uploads = joined_etag([each.etag for each in wanted]), Uploads(bucket)
    upload = await uploads.find(_upload_id(call), call.key)
    if upload is None:
        # The client may repeat the request because it missed the answer.
        found = await bucket.find(call.key)
        if found is None or found.info.nonce != _upload_id(call) or found.info.etag != etag:
            raise S3Fault("NoSuchUpload")
        return _completed(call, found.info)
    _require_kind(call, upload)
    require_checksums(wanted, upload.algorithm if upload.checksum_type == "COMPOSITE" else "")
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


def _require_kind(call: Call, upload: Upload | None) -> None:
    """Raise InvalidRequest if the headers name checksums that are malformed, or of another type than the upload's."""
    kind = call.header("x-amz-checksum-type")
    if kind is not None and kind.upper() not in ("FULL_OBJECT", "COMPOSITE"):
        raise S3Fault("InvalidRequest", "Value for x-amz-checksum-type header is invalid.")
    require_single(named_in(call.head.headers))
    if upload is not None and upload.algorithm and kind is not None and kind.upper() != upload.checksum_type:
        said = f"The upload was created using the {upload.checksum_type} checksum mode."
        raise S3Fault("InvalidRequest", f"{said} The complete request must use the same checksum mode.")


def _require_same_algorithm(call: Call, upload: Upload) -> None:
    """Raise InvalidRequest if a part's checksum is of another algorithm than the upload's, or has to be there."""
    given = named_checksums(call)
    if not upload.algorithm or upload.algorithm in given or (not given and upload.checksum_type == "FULL_OBJECT"):
        return
    actual = min(given).upper() if given else "null"
    expected = f"expected checksum Type: {upload.algorithm.upper()}, actual checksum Type: {actual}"
    raise S3Fault("InvalidRequest", f"Checksum Type mismatch occurred, {expected}")


async def _joined_info(
    call: Call, upload: Upload, parts: Sequence[StoredObject], wanted: Sequence[WantedPart]
) -> ObjectInfo:
    """The object's information; BadDigest or InvalidRequest if it does not match the request."""
    sizes = [part.size or 0 for part in parts]
    said_size = call.header("x-amz-mp-object-size")
    if said_size is not None and said_size != str(sum(sizes)):
        if said_size.startswith("-"):
            message = f"Value for x-amz-mp-object-size header is less than zero: '{said_size}'"
        else:
            computed = f"does not match what was computed: {sum(sizes)}"
            message = f"The provided 'x-amz-mp-object-size' header value {said_size} {computed}"
        raise S3Fault("InvalidRequest", message)
    checksums = {}
    if upload.algorithm:
        run = call.door.services.store.runtime.cpu.run
        checksums[upload.algorithm] = await run(joined_checksum, upload.algorithm, upload.checksum_type, parts)
    for name, value in checksums.items():
        given = call.header(f"x-amz-checksum-{name}")
        if given is not None and given.partition("-")[0] != value.partition("-")[0]:
            raise S3Fault("BadDigest", mismatch(name))
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
            text("Location", call.location),
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
    begun = call.header("x-amz-if-match-initiated-time")
    DeleteConditions(modified=begun).require_begun(upload.info.modified, call.door.now())
    await Uploads(bucket).remove(upload)
    return Answer(204, "")


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
