"""Tags of objects: their limits, and the operations on them."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from grid.directory.metadata import pack_metadata
from grid.gateway.http.answers import Answer, AnyAnswer
from grid.s3.documents import XML, document, element, text
from grid.s3.door import Call
from grid.s3.faults import S3Fault
from grid.s3.object_info import StoredObject
from grid.s3.payload import read_document

MAX_TAGS = 10
MAX_TAGS_DOCUMENT = 2**16


async def get_tagging(call: Call) -> AnyAnswer:
    """The tags of an object, sorted by their keys."""
    found = await (await call.bucket()).find(call.key)
    if found is None:
        raise S3Fault("NoSuchKey")
    tags = (element("Tag", text("Key", key), text("Value", value)) for key, value in sorted(found.info.tags.items()))
    return Answer(200, XML, document("Tagging", element("TagSet", *tags)))


async def put_tagging(call: Call) -> AnyAnswer:
    """Replace the tags of an object."""
    bucket = await call.bucket()
    bucket.require_writable()
    root = await read_document(call, MAX_TAGS_DOCUMENT, "Tagging")
    pairs = [(tag.get("Key") or "", tag.get("Value") or "") for each in root.all("TagSet") for tag in each.all("Tag")]
    await _set_tags(call, check_tags(pairs))
    return Answer(200, "")


async def delete_tagging(call: Call) -> AnyAnswer:
    """Remove the tags of an object."""
    await _set_tags(call, {})
    return Answer(204, "")


async def _set_tags(call: Call, tags: Mapping[str, str]) -> None:
    def describe(found: StoredObject) -> dict[str, object]:
        metadata = evolve(found.info, tags=tags).to_metadata(found.target, found.metadata)
        pack_metadata(metadata)
        return metadata

    await (await call.bucket()).change(call.key, describe)


def check_tags(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Validate the tags; InvalidTag if there are too many or one is too long."""
    if len(pairs) > MAX_TAGS or len({key for key, _ in pairs}) != len(pairs):
        raise S3Fault("InvalidTag", "An object may have at most 10 tags, with different keys.")
    if any(not 0 < len(key) <= 128 or len(value) > 256 or not (key + value).isprintable() for key, value in pairs):
        raise S3Fault("InvalidTag", "A tag's key has up to 128 characters, and its value up to 256.")
    return dict(pairs)
