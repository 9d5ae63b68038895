"""The announcements that an introducer sent last time, for when it cannot be reached. [spec wire 9]"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from grid.discovery.announcement import Announcement, parse_fields
from grid.discovery.yaml_files import pack_yaml, parse_yaml, read_limited
from grid.errors import FormatError
from grid.limits import MAX_ANNOUNCEMENTS
from grid.ports import ServerId


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
