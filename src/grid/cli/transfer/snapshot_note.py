"""What a backup notes beside the link of a snapshot: where it is from, its tags, and its size. Pure.

It is under `grid-snapshot` in the link's metadata, which 1.20 keeps and ignores (decision 300). Anyone who can write the
directory chooses it, so that each value is taken only if it is of its kind and short.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import asdict, frozen

KEY = "grid-snapshot"

MAX_TEXT = 4096
"""Characters of a machine's name, of a directory's path, or of a tag."""

MAX_TAG = 100

MAX_TAGS = 64


@frozen(kw_only=True)
class SnapshotNote:
    """host, directory: "" if they are not known. files, size: None likewise; size: bytes of all files."""

    host: str = ""
    directory: str = ""
    tags: tuple[str, ...] = ()
    files: int | None = None
    size: int | None = None
    is_complete: bool = True

    @classmethod
    def of(cls, metadata: Mapping[str, object]) -> SnapshotNote:
        """The note in a link's metadata, without what is malformed."""
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
