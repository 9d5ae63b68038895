"""The announcements that are kept: one for each service and key, bounded in number; and the file that keeps them.

The file is for when the introducer cannot be reached. [spec wire 9]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from grid.discovery.announcement import Announcement, parse_fields, replaces
from grid.discovery.yaml_files import pack_yaml, parse_yaml, read_limited
from grid.errors import FormatError
from grid.limits import MAX_ANNOUNCEMENTS
from grid.ports import ServerId


class KeptAnnouncements:
    """What has been accepted so far; nothing is ever dropped."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, ServerId], Announcement] = {}

    def __iter__(self) -> Iterator[Announcement]:
        return iter(self._kept.values())

    def __len__(self) -> int:
        return len(self._kept)

    def of_service(self, service_name: str) -> list[Announcement]:
        """Those of one service."""
        return [announcement for announcement in self if announcement.service_name == service_name]

    def offer(self, new: Announcement) -> bool:
        """Whether it was accepted: it is the first of its service and key (and there is room), or replaces another."""
        place = (new.service_name, new.server_id)
        kept = self._kept.get(place)
        if kept is None and len(self._kept) >= MAX_ANNOUNCEMENTS:
            return False
        if not replaces(new, kept):
            return False
        self._kept[place] = new
        return True


def pack_cache(announcements: Iterable[Announcement]) -> bytes:
    """The cache file's content."""
    return pack_yaml(
        [{"ann": dict(announcement.fields), "key_s": str(announcement.server_id)} for announcement in announcements]
    )


def parse_cache(data: bytes) -> list[Announcement]:
    """The announcements in a cache file; entries that cannot be used are left out, FormatError if it is no list."""
    content = parse_yaml(data)
    if content is None:
        return []
    if not isinstance(content, list):
        raise FormatError("a cache of announcements is a list")
    found = []
    for entry in content[:MAX_ANNOUNCEMENTS]:
        if isinstance(entry, dict) and isinstance(entry.get("key_s"), str):
            try:
                found.append(parse_fields(ServerId(entry["key_s"]), entry.get("ann")))
            except FormatError:
                continue
    return found


def read_cache(path: Path) -> list[Announcement]:
    """The announcements in that file; none if there is none, or it cannot be read: it is only a cache."""
    try:
        data = read_limited(path)
        return [] if data is None else parse_cache(data)
    except (FormatError, OSError):
        return []
