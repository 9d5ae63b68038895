"""Tags of objects and buckets: their limits, and the operations on them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

from attrs import evolve

from grid.directory.metadata import Metadata, pack_metadata
from grid.gateway.http.answers import Answer, AnyAnswer
from grid.s3.documents import XML, Element, document, element, text
from grid.s3.door import Call
from grid.s3.faults import S3Fault, invalid_argument
from grid.s3.names import TAGS
from grid.s3.object_info import FIELD, StoredObject, texts_in
from grid.s3.payload import read_document

MAX_TAGS = 10
MAX_BUCKET_TAGS = 50
MAX_TAGS_DOCUMENT = 2**16

_TAG = re.compile(r"[\w +\-=.:/@]*")
"""What S3 permits in the keys and values of tags."""

_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_TAGGING = (
    "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name"
    " duplicates."
)


async def get_tagging(call: Call) -> AnyAnswer:
    """The tags of an object, sorted by their keys."""
    _, found = await call.find()
    return _answer(found.info.tags)


def _answer(tags: Mapping[str, str]) -> AnyAnswer:
    shown = (element("Tag", text("Key", key), text("Value", value)) for key, value in sorted(tags.items()))
    return Answer(200, XML, document("Tagging", element("TagSet", *shown)))


async def put_tagging(call: Call) -> AnyAnswer:
    """Replace the tags of an object."""
    root = await read_document(call, MAX_TAGS_DOCUMENT, "Tagging")
    bucket = await call.bucket()
    bucket.require_writable()
    await _set_tags(call, check_tags(_pairs(root, "TagSet")))
    return Answer(200, "")


async def delete_tagging(call: Call) -> AnyAnswer:
    """Remove the tags of an object."""
    await _set_tags(call, {})
    return Answer(204, "")


async def get_bucket_tagging(call: Call) -> AnyAnswer:
    """The tags of a bucket, sorted by their keys; NoSuchTagSet if it has none."""
    tags = texts_in((await (await call.bucket()).setting(TAGS)).get(FIELD))
    if not tags:
        raise S3Fault("NoSuchTagSet")
    return _answer(tags)


async def put_bucket_tagging(call: Call) -> AnyAnswer:
    """Replace the tags of a bucket."""
    root = await read_document(call, MAX_TAGS_DOCUMENT, "Tagging")
    bucket = await call.bucket()
    await bucket.set(TAGS, bucket_tags(root, "TagSet"))
    return Answer(204, "")


async def delete_bucket_tagging(call: Call) -> AnyAnswer:
    """Remove the tags of a bucket."""
    await (await call.bucket()).set(TAGS, {})
    return Answer(204, "")


def bucket_tags(document: Element, name: str) -> Metadata:
    """The metadata for the tags of a bucket in a document, in its element of this name. BadRequest, InvalidTag."""
    pairs = _pairs(document, name)
    if len(pairs) > MAX_BUCKET_TAGS:
        raise S3Fault("BadRequest", f"Bucket tag count cannot be greater than {MAX_BUCKET_TAGS}")
    metadata: Metadata = {FIELD: _checked(pairs)} if pairs else {}
    pack_metadata(metadata)
    return metadata


def _pairs(document: Element, name: str) -> list[tuple[str, str]]:
    """The keys and values of tags in a document's elements of this name."""
    return [(tag.get("Key") or "", tag.get("Value") or "") for each in document.all(name) for tag in each.all("Tag")]


async def _set_tags(call: Call, tags: Mapping[str, str]) -> None:
    def describe(found: StoredObject) -> dict[str, object]:
        metadata = evolve(found.info, tags=tags).to_metadata(found.target, found.metadata)
        pack_metadata(metadata)
        return metadata

    await (await call.bucket()).change(call.key, describe)


def header_tags(given: str) -> dict[str, str]:
    """The tags in the header x-amz-tagging; InvalidArgument, InvalidTag."""
    if _BAD_PERCENT.search(given):
        raise invalid_argument("x-amz-tagging", given, _TAGGING)
    pairs = parse_qsl(given, keep_blank_values=True)
    if not all(key for key, _ in pairs) or len({key for key, _ in pairs}) != len(pairs):
        raise invalid_argument("x-amz-tagging", given, _TAGGING)
    return check_tags(pairs)


def check_tags(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Validate the tags; InvalidTag if there are too many, or one is too long or has characters that S3 forbids."""
    if len(pairs) > MAX_TAGS:
        raise S3Fault("InvalidTag", "Object tags cannot be greater than 10")
    return _checked(pairs)


def _checked(pairs: list[tuple[str, str]]) -> dict[str, str]:
    for key, value in pairs:
        if not 0 < len(key) <= 128 or not _TAG.fullmatch(key):
            raise S3Fault("InvalidTag", "The TagKey you have provided is invalid")
        if len(value) > 256 or not _TAG.fullmatch(value):
            raise S3Fault("InvalidTag", "The TagValue you have provided is invalid")
    if len({key for key, _ in pairs}) != len(pairs):
        raise S3Fault("InvalidTag", "Cannot provide multiple Tags with the same key")
    return dict(pairs)
