"""Incomplete multipart uploads: where they are stored, how each was begun, and its parts.

An upload is a directory in the bucket's own directory of uploads; each part is a file in it, named by its number. All
gateways see the same uploads, and an upload survives restarts. Nothing of it is an object before it is complete.

Cost: a part: reads of two directories, and a share of one publish.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from grid.caps import DirectoryCap, KnownCap
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.gathering import Children
from grid.directory.metadata import Metadata, pack_metadata, seconds_in
from grid.directory.node import Look
from grid.directory.pack import Child
from grid.s3.bucket import Bucket
from grid.s3.checksums import ALGORITHMS
from grid.s3.names import UPLOADS
from grid.s3.object_info import MAX_PARTS, ObjectInfo, StoredObject, object_of, texts_in
from grid.values import field, frozen

FIELD = "s3-upload"
"""Its key in the metadata of an upload's link."""

_ID = re.compile(r"[0-9a-f]{32}")
_NUMBER = re.compile(r"[0-9]{5}")


@frozen(kw_only=True)
class Upload:
    """An upload. root: its directory. info: of the future object. algorithm: "" for no checksum."""

    upload_id: str
    key: str
    root: DirectoryCap = field(repr=False)
    info: ObjectInfo
    algorithm: str = ""
    checksum_type: str = ""

    def to_metadata(self) -> dict[str, object]:
        """The metadata of its link."""
        info = self.info
        said = {
            "key": self.key,
            "begun": info.modified,
            "headers": dict(info.headers),
            "user": dict(info.user),
            "tags": dict(info.tags),
            "algorithm": self.algorithm,
            "checksum-type": self.checksum_type,
        }
        return {FIELD: said}


def _upload_of(upload_id: str, child: Child | None) -> Upload | None:
    """The upload that a link leads to, or None."""
    if child is None or not isinstance(child.target, DirectoryCap) or not _ID.fullmatch(upload_id):
        return None
    said = (child.metadata or {}).get(FIELD)
    if not isinstance(said, Mapping) or not isinstance(key := said.get("key"), str):
        return None
    texts = texts_in(said)
    return Upload(
        upload_id=upload_id,
        key=key,
        root=child.target,
        info=ObjectInfo(
            etag="",
            modified=seconds_in(said.get("begun")) or 0.0,
            nonce=upload_id,
            headers=texts_in(said.get("headers")),
            user=texts_in(said.get("user")),
            tags=texts_in(said.get("tags")),
        ),
        algorithm=algorithm if (algorithm := texts.get("algorithm", "")) in ALGORITHMS else "",
        checksum_type=texts.get("checksum-type", ""),
    )


class Uploads:
    """The uploads of one bucket."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._directories = bucket.directories

    async def begin(self, upload: Upload) -> None:
        """Record a new upload; FormatError for too much metadata."""
        metadata = upload.to_metadata()
        pack_metadata(metadata)
        place = await self._directories.make(self._bucket.root, UPLOADS)
        await self._set(place, upload.upload_id, upload.root, metadata)

    async def all(self) -> list[Upload]:
        """All uploads, sorted by key and then by start time, with which their names begin."""
        place = await self._place()
        children: Children = {} if place is None else await self._directories.read(place)
        found = [upload for name, child in children.items() if (upload := _upload_of(name, child)) is not None]
        return sorted(found, key=lambda upload: (upload.key, upload.upload_id))

    async def find(self, upload_id: str, key: str) -> Upload | None:
        """The upload of this name, if it is for this key; None otherwise."""
        place = await self._place()
        child = None if place is None else (await self._directories.read(place)).get(upload_id)
        found = _upload_of(upload_id, child)
        return found if found is not None and found.key == key else None

    async def add(self, upload: Upload, number: int, target: KnownCap, info: ObjectInfo) -> None:
        """Record a part, replacing one with the same number."""
        await self._set(upload.root, f"{number:05}", target, info.to_metadata(target, {}))

    async def parts(self, upload: Upload) -> dict[int, StoredObject]:
        """The parts by number, in order."""
        children = await self._directories.read(upload.root)
        found = {}
        for name in sorted(children):
            part = object_of(children[name]) if _NUMBER.fullmatch(name) else None
            if part is not None and part.size is not None and 0 < int(name) <= MAX_PARTS:
                found[int(name)] = part
        return found

    async def remove(self, upload: Upload) -> None:
        """Remove an upload; succeeds even if it is gone."""
        place = await self._place()
        if place is None:
            return
        edit = RemoveChild(upload.upload_id, must_exist=False, only=upload.root)
        await self._directories.change(place, lambda look, retrying: (edit,))

    async def _place(self) -> DirectoryCap | None:
        child = (await self._directories.read(self._bucket.root)).get(UPLOADS)
        return child.target if child is not None and isinstance(child.target, DirectoryCap) else None

    async def _set(self, place: DirectoryCap, name: str, target: KnownCap, metadata: Metadata) -> None:
        def decide(look: Look, retrying: bool) -> Sequence[SetChild | RemoveChild]:
            return (SetChild(name, target, metadata),)

        await self._directories.change(place, decide)
