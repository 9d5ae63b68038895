"""What the door keeps of an object beside its bytes: in the metadata of the link that leads to it. Pure.

It says of which file it is: a link that another program has led elsewhere, and whose metadata it kept, says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

from attrs import field, frozen

from grid.caps import ChkCap, KnownCap, LitCap, SequenceCap, SliceCap, UnknownChild
from grid.directory.metadata import Metadata, seconds_in
from grid.directory.pack import Child
from grid.s3.checksums import ALGORITHMS

FIELD = "s3"
"""The key in a link's metadata."""

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
"""Of one object, as with S3."""

MOST_RUNS = 200
"""Runs of parts of equal size that are kept: clients send all parts but the last alike."""

_ETAG = re.compile(r"[0-9a-f]{32}(?:-[0-9]{1,5})?")


@frozen(kw_only=True)
class ObjectInfo:
    """etag: without quotes. modified: Unix time. nonce: of the put, which tells it from others with equal bytes.

    headers, user: as clients gave them, names in lower case. checksums: by algorithm. parts: of an object that came in parts,
    how many bytes each has, as runs of equal ones: the bytes, and how many such parts follow each other.
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
        """In how many parts the object came; 0 if that is not known, or it came whole."""
        return sum(count for _, count in self.parts)

    def part(self, number: int) -> tuple[int, int]:
        """Where that part begins and ends, counted from 1; (0, 0) if there is none."""
        start, left = 0, number - 1
        for size, count in self.parts:
            if left < count:
                return start + left * size, start + (left + 1) * size
            start, left = start + count * size, left - count
        return 0, 0

    def to_metadata(self, target: KnownCap, others: Metadata) -> dict[str, object]:
        """A link's metadata with this in it. others: what it has besides."""
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
    """An object that is there: the link to it, and what is known of it."""

    target: KnownCap = field(repr=False)
    info: ObjectInfo
    metadata: Metadata = field(repr=False)

    @property
    def size(self) -> int | None:
        """Bytes; None if only the servers know."""
        return _size(self.target)


def object_of(child: Child | None) -> StoredObject | None:
    """The object that a link leads to; None if it is no file that can be read."""
    if child is None or isinstance(child.target, UnknownChild):
        return None
    metadata = child.metadata or {}
    return StoredObject(child.target, _parse(child.target, metadata), metadata)


def _parse(target: KnownCap, metadata: Metadata) -> ObjectInfo:
    said, mark = metadata.get(FIELD), print_of(target)
    if not isinstance(said, Mapping) or said.get("of") != mark or not _ETAG.fullmatch(_text(said.get("etag"))):
        return ObjectInfo(etag=f"{mark}-0", modified=_linked_at(metadata))
    modified = seconds_in(said.get("modified"))
    return ObjectInfo(
        etag=said["etag"],
        modified=_linked_at(metadata) if modified is None else modified,
        nonce=_text(said.get("nonce")),
        headers=texts_in(said.get("headers")),
        user=texts_in(said.get("user")),
        checksums={name: text for name, text in texts_in(said.get("checksums")).items() if name in ALGORITHMS},
        checksum_type=_text(said.get("checksum-type")),
        parts=_parts(said.get("parts"), _size(target)),
        tags=texts_in(said.get("tags")),
    )


def _size(target: KnownCap) -> int | None:
    return target.size if isinstance(target, LitCap | ChkCap | SliceCap | SequenceCap) else None


def _parts(value: object, size: int | None) -> tuple[tuple[int, int], ...]:
    """Runs of parts that are those of a file; none otherwise, since anybody who can change the link can write some."""
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
    """What tells a file from others, and does not read it."""
    return sha256(b"grid_s3_object_v1+" + target.read_cap().to_string().encode()).hexdigest()[:32]


def _linked_at(metadata: Metadata) -> float:
    times = metadata.get("tahoe")
    found = seconds_in(times.get("linkmotime")) if isinstance(times, Mapping) else None
    return 0.0 if found is None or found < 0 else found


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def texts_in(value: object) -> dict[str, str]:
    """The texts in an object of metadata that can be headers, by name."""
    if not isinstance(value, Mapping):
        return {}
    return {str(name): text for name, text in value.items() if isinstance(text, str) and text.isprintable()}
