"""The door's information about an object, stored in the metadata of its link. Pure.

It identifies the file that it describes. If another program changes the link's target but keeps its metadata, the
information is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import TypeGuard

from grid.caps import ChkCap, KnownCap, LitCap, SequenceCap, SliceCap, UnknownChild
from grid.directory.metadata import Metadata, seconds_in
from grid.directory.pack import Child
from grid.s3.checksums import is_checksum
from grid.values import field, frozen

FIELD = "s3"
"""Its key in a link's metadata."""

KEPT_HEADERS = (
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "expires",
)

Texts = Mapping[str, str]

MAX_PARTS = 10_000
"""Parts of one object, as in S3."""

MOST_RUNS = 200
"""Runs of equally sized parts kept: clients usually send all parts but the last with one size."""

_ETAG = re.compile(r"[0-9a-f]{32}(?:-[0-9]{1,5})?")


@frozen(kw_only=True)
class ObjectInfo:
    """etag: without quotes. modified: Unix time. nonce: distinguishes this put from others of equal bytes.

    headers, user: as clients sent them, names in lower case. checksums: by algorithm. parts: sizes of the parts of a
    multipart object, run-length encoded as (bytes, count).
    """

    etag: str
    modified: float
    nonce: str = ""
    headers: Texts = field(factory=dict)
    user: Texts = field(factory=dict)
    checksums: Texts = field(factory=dict)
    checksum_type: str = ""
    parts: tuple[tuple[int, int], ...] = ()
    tags: Texts = field(factory=dict)

    @property
    def part_count(self) -> int:
        """The number of parts of a multipart object; 0 if it is not one or this is unknown."""
        return sum(count for _, count in self.parts)

    def part(self, number: int) -> tuple[int, int]:
        """The start and end of a part, counted from 1; (0, 0) if it does not exist."""
        start, left = 0, number - 1
        for size, count in self.parts:
            if left < count:
                return start + left * size, start + (left + 1) * size
            start, left = start + count * size, left - count
        return 0, 0

    def to_metadata(self, target: KnownCap, others: Metadata) -> dict[str, object]:
        """Merge this into a link's metadata. others: the rest of it."""
        said: dict[str, object] = {"of": print_of(target), "etag": self.etag, "modified": self.modified}
        said |= {
            name: value
            for name, value in (
                ("nonce", self.nonce),
                ("headers", dict(self.headers)),
                ("user", dict(self.user)),
                ("checksums", dict(self.checksums)),
                ("checksum-type", self.checksum_type),
                ("parts", [list(run) for run in self.parts] if len(self.parts) <= MOST_RUNS else []),
                ("tags", dict(self.tags)),
            )
            if value
        }
        return {**others, FIELD: said}


@frozen
class StoredObject:
    """An existing object: its link, and what is known of it."""

    target: KnownCap = field(repr=False)
    info: ObjectInfo
    metadata: Metadata = field(repr=False)

    @property
    def size(self) -> int | None:
        """Bytes; None if only the servers know."""
        return _size(self.target)

    @property
    def is_mutable(self) -> bool:
        """Whether its contents may change while the link stays the same."""
        return self.size is None


@frozen(kw_only=True)
class ListedObject:
    """What a listing shows of an object. algorithms: of its checksums. is_composite: those are of its parts' checksums.

    size: in bytes, or None if only the servers know; then `file` is what to ask them for.
    """

    size: int | None
    file: KnownCap | None = field(repr=False)
    etag: str
    modified: float
    algorithms: tuple[str, ...]
    is_composite: bool = False


def object_of(child: Child | None) -> StoredObject | None:
    """The object that a link leads to; None if it is not a readable file."""
    if child is None or isinstance(child.target, UnknownChild):
        return None
    metadata = child.metadata or {}
    return StoredObject(child.target, _parse(child.target, metadata), metadata)


def listed_object(target: KnownCap, metadata: Metadata) -> ListedObject:
    """The same for a listing, which takes half the time."""
    said, etag = _said(target, metadata)
    size, algorithms = _size(target), tuple(_checksums(said))
    return ListedObject(
        size=size,
        file=target if size is None else None,
        etag=etag,
        modified=_modified(said, metadata),
        algorithms=algorithms,
        is_composite=bool(algorithms) and said.get("checksum-type") == "COMPOSITE",
    )


def _said(target: KnownCap, metadata: Metadata) -> tuple[Mapping[str, object], str]:
    """What the metadata says of this target, or nothing; and the ETag."""
    said, mark = metadata.get(FIELD), print_of(target)
    if _is_object(said) and said.get("of") == mark and _ETAG.fullmatch(etag := _text(said.get("etag"))):
        return said, etag
    return {}, f"{mark}-0"


def _modified(said: Mapping[str, object], metadata: Metadata) -> float:
    modified = seconds_in(said.get("modified"))
    return _linked_at(metadata) if modified is None else modified


def _checksums(said: Mapping[str, object]) -> dict[str, str]:
    return {name: text for name, text in texts_in(said.get("checksums")).items() if is_checksum(name, text)}


def _parse(target: KnownCap, metadata: Metadata) -> ObjectInfo:
    said, etag = _said(target, metadata)
    kind = said.get("checksum-type")
    return ObjectInfo(
        etag=etag,
        modified=_modified(said, metadata),
        nonce=_text(said.get("nonce")),
        headers=texts_in(said.get("headers")),
        user=texts_in(said.get("user")),
        checksums=_checksums(said),
        checksum_type=str(kind) if kind in ("FULL_OBJECT", "COMPOSITE") else "",
        parts=_parts(said.get("parts"), _size(target)),
        tags=texts_in(said.get("tags")),
    )


def _size(target: KnownCap) -> int | None:
    return target.size if isinstance(target, LitCap | ChkCap | SliceCap | SequenceCap) else None


def _parts(value: object, size: int | None) -> tuple[tuple[int, int], ...]:
    """Parse runs of parts; empty if they do not match the file's size, since anybody who can change the link can write
    them.
    """
    if not isinstance(value, list | tuple) or len(value) > MOST_RUNS:
        return ()
    runs = []
    for run in value:
        if (
            not isinstance(run, list | tuple)
            or len(run) != 2
            or not all(type(each) is int and each > 0 for each in run)
        ):
            return ()
        runs.append((run[0], run[1]))
    return tuple(runs) if sum(each * count for each, count in runs) == size else ()


def print_of(target: KnownCap) -> str:
    """An identifier of the file that does not grant reading it."""
    return sha256(b"grid_s3_object_v1+" + target.read_cap().to_string().encode()).hexdigest()[:32]


def _linked_at(metadata: Metadata) -> float:
    times = metadata.get("tahoe")
    found = seconds_in(times.get("linkmotime")) if isinstance(times, Mapping) else None
    return 0.0 if found is None or found < 0 else found


def _is_object(value: object) -> TypeGuard[Metadata]:
    """Whether it is a JSON object: nearly always a dictionary, and a check for any mapping takes several times as long."""
    return type(value) is dict or isinstance(value, Mapping)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def texts_in(value: object) -> dict[str, str]:
    """The strings of a metadata object that are valid header values, by name."""
    if not value or not _is_object(value):
        return {}
    return {str(name): text for name, text in value.items() if isinstance(text, str) and text.isprintable()}
