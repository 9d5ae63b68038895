"""Lists incomplete multipart uploads and their parts."""

from __future__ import annotations

from grid.gateway.http.answers import Answer, AnyAnswer
from grid.s3.bucket_operations import Encoding
from grid.s3.documents import XML, document, element, flag, text
from grid.s3.door import Call
from grid.s3.object_info import MAX_PARTS
from grid.s3.objects import checksum_texts
from grid.s3.permissions import owner_element
from grid.s3.times import iso_time
from grid.s3.upload_operations import named_upload
from grid.s3.uploads import Upload, Uploads

MAX_PAGE = 1000


async def list_parts(call: Call) -> AnyAnswer:
    """A page of an upload's parts."""
    bucket, upload = await named_upload(call, writes=False)
    after, most = call.number("part-number-marker", 0, MAX_PARTS), call.number("max-parts", MAX_PAGE, MAX_PAGE)
    left = [(number, part) for number, part in (await Uploads(bucket).parts(upload)).items() if number > after]
    page = left[:most]
    said = (
        element(
            "Part",
            text("PartNumber", number),
            text("LastModified", iso_time(part.info.modified)),
            text("ETag", f'"{part.info.etag}"'),
            text("Size", part.size),
            *checksum_texts(part.info),
        )
        for number, part in page
    )
    body = document(
        "ListPartsResult",
        text("Bucket", call.bucket_name),
        text("Key", call.key),
        text("UploadId", upload.upload_id),
        owner_element("Initiator", call),
        owner_element("Owner", call),
        text("StorageClass", "STANDARD"),
        text("PartNumberMarker", after),
        text("NextPartNumberMarker", page[-1][0] if page else after),
        text("MaxParts", most),
        flag("IsTruncated", 0 < len(page) < len(left)),
        text("ChecksumAlgorithm", upload.algorithm.upper()) if upload.algorithm else "",
        text("ChecksumType", upload.checksum_type) if upload.algorithm else "",
        *said,
    )
    return Answer(200, XML, body)


async def list_uploads(call: Call) -> AnyAnswer:
    """A page of a bucket's incomplete uploads."""
    encoding, most = Encoding.of(call), call.number("max-uploads", MAX_PAGE, MAX_PAGE)
    prefix, delimiter = call.parameter("prefix") or "", call.parameter("delimiter") or ""
    key_after, id_after = call.parameter("key-marker") or "", call.parameter("upload-id-marker") or ""
    shown: list[Upload | str] = []
    last, is_cut = ("", ""), False
    found = await Uploads(await call.bucket()).all()
    for upload in found:
        here = upload.key, upload.upload_id
        is_before = here <= (key_after, id_after) if id_after else upload.key <= key_after
        if not upload.key.startswith(prefix) or (is_before and key_after):
            continue
        end = upload.key.find(delimiter, len(prefix)) if delimiter else -1
        entry: Upload | str = upload if end < 0 else upload.key[: end + len(delimiter)]
        if isinstance(entry, str) and (entry in shown[-1:] or key_after.startswith(entry)):
            last = here
            continue
        if len(shown) == most:
            is_cut = most > 0
            break
        shown.append(entry)
        last = here
    body = document(
        "ListMultipartUploadsResult",
        text("Bucket", call.bucket_name),
        encoding.text("KeyMarker", key_after),
        text("UploadIdMarker", id_after),
        encoding.text("NextKeyMarker", last[0]) if is_cut else "",
        text("NextUploadIdMarker", last[1]) if is_cut else "",
        encoding.text("Prefix", prefix),
        encoding.text("Delimiter", delimiter) if delimiter else "",
        text("EncodingType", "url") if encoding.is_url else "",
        text("MaxUploads", most),
        flag("IsTruncated", is_cut),
        *(_upload_element(call, encoding, each) for each in shown if isinstance(each, Upload)),
        *(element("CommonPrefixes", encoding.text("Prefix", each)) for each in shown if isinstance(each, str)),
    )
    return Answer(200, XML, body)


def _upload_element(call: Call, encoding: Encoding, upload: Upload) -> str:
    return element(
        "Upload",
        encoding.text("Key", upload.key),
        text("UploadId", upload.upload_id),
        owner_element("Initiator", call),
        owner_element("Owner", call),
        text("StorageClass", "STANDARD"),
        text("Initiated", iso_time(upload.info.modified)),
        text("ChecksumAlgorithm", upload.algorithm.upper()) if upload.algorithm else "",
        text("ChecksumType", upload.checksum_type) if upload.algorithm else "",
    )
