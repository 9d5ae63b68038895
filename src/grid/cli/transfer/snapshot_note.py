"""What a backup records beside a snapshot's link: its origin, tags and size. Pure.

It is stored under `grid-snapshot` in the link's metadata, which 1.20 keeps and ignores (decision 300). Anyone who can
write the directory controls it, so each value is accepted only if its type and length are valid.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import asdict, frozen

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


def _text(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= MAX_TEXT else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None
