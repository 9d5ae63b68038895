"""The snapshots in a backup's `Archives`: their names, and what the backup recorded beside each link. Pure.

A name is the time of the snapshot in 1.20's format. [spec cli 3.1] Machine, directory, tags and sizes are stored under
`grid-snapshot` in the link's metadata, which 1.20 keeps and ignores (decision 300). Anyone who can write the directory
controls it, so each value is accepted only if its type and length are valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from attrs import asdict, field

from grid.caps import DirectoryCap
from grid.directory.pack import Child
from grid.values import frozen

ARCHIVES = "Archives"
"""The directory of a backup's snapshots."""

LATEST = "Latest"
"""The link to a backup's newest snapshot."""

NAME_FORMAT = "%Y-%m-%d_%H:%M:%SZ"
"""The format of the names that `grid backup` gives snapshots, in UTC."""

_NAME_LENGTH = len("2026-01-31_12:00:00Z")

KEY = "grid-snapshot"

MAX_TEXT = 4096
"""Characters of a machine's name, a directory's path, or a tag."""

MAX_TAG = 100

MAX_TAGS = 64


@frozen(kw_only=True)
class SnapshotNote:
    """host, directory: "" if unknown. files, size: None if unknown. size: bytes of all files."""

    host: str = ""
    directory: str = ""
    tags: tuple[str, ...] = ()
    files: int | None = None
    size: int | None = None
    is_complete: bool = True

    @classmethod
    def of(cls, metadata: Mapping[str, object]) -> SnapshotNote:
        """Parse the note in a link's metadata; malformed parts are ignored."""
        noted = metadata.get(KEY)
        if not isinstance(noted, Mapping):
            return cls()
        tags = noted.get("tags")
        return cls(
            host=_text(noted.get("host")),
            directory=_text(noted.get("directory")),
            tags=tuple(tag for tag in map(_text, tags[:MAX_TAGS]) if tag) if isinstance(tags, list | tuple) else (),
            files=_count(noted.get("files")),
            size=_count(noted.get("size")),
            is_complete=noted.get("is_complete") is not False,
        )

    def to_metadata(self) -> dict[str, object]:
        """The metadata of the link."""
        return {KEY: {**asdict(self), "tags": list(self.tags)}}


@frozen(kw_only=True)
class Snapshot:
    """One link in `Archives`. name: sorts by time."""

    name: str
    made_at: datetime
    cap: DirectoryCap = field(repr=False)
    note: SnapshotNote = field(factory=SnapshotNote)

    @property
    def group(self) -> tuple[str, str]:
        """Its machine and directory: a policy counts each pair separately."""
        return self.note.host, self.note.directory


def snapshots_of(entries: Mapping[str, Child]) -> list[Snapshot]:
    """The entries that are snapshots, the oldest first: directories with a time as their name. All others are ignored."""
    found = []
    for name, child in entries.items():
        # Most entries of other directories are passed over by this alone: a page looks at each of its directory's.
        if len(name) != _NAME_LENGTH or not isinstance(child.target, DirectoryCap):
            continue
        made_at = parse_name(name)
        if made_at is not None:
            note = SnapshotNote.of(child.metadata)
            found.append(Snapshot(name=name, made_at=made_at, cap=child.target, note=note))
    return sorted(found, key=lambda each: each.name)


def parse_name(name: str) -> datetime | None:
    """The time in a snapshot's name; None if it is not such a name."""
    try:
        moment = datetime.strptime(name, NAME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
    return moment if moment.strftime(NAME_FORMAT) == name else None


def _text(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= MAX_TEXT else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None
