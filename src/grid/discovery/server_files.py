"""Announcements in files: those that a client remembers, and the servers in `private/servers.yaml`.

One announcement is remembered per service and key, up to a limit. The file is used while the introducer
cannot be reached. [spec wire 9, 10]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from grid.discovery.announcement import Announcement, parse_fields, replaces, storage_furl
from grid.discovery.yaml_files import as_json, parse_yaml, read_limited
from grid.errors import ConfigError, FormatError
from grid.limits import MAX_ANNOUNCEMENTS, MAX_ANNOUNCEMENTS_SIZE, MAX_SERVERS_FILE
from grid.ports import ServerId


class KeptAnnouncements:
    """The announcements accepted so far, limited in number and size; none is ever dropped."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, ServerId], Announcement] = {}
        self._size = 0

    def __iter__(self) -> Iterator[Announcement]:
        return iter(self._kept.values())

    def __len__(self) -> int:
        return len(self._kept)

    def of_service(self, service_name: str) -> list[Announcement]:
        """The announcements of one service."""
        return [announcement for announcement in self if announcement.service_name == service_name]

    def offer(self, new: Announcement) -> bool:
        """Accept the announcement if it is the first of its service and key (and there is room) or replaces another. Returns whether
        it was accepted.
        """
        place = (new.service_name, new.server_id)
        kept = self._kept.get(place)
        if kept is None and len(self._kept) >= MAX_ANNOUNCEMENTS:
            return False
        if not replaces(new, kept):
            return False
        size = self._size + _size_of(new) - _size_of(kept)
        if size > MAX_ANNOUNCEMENTS_SIZE:
            return False
        self._kept[place], self._size = new, size
        return True


def _size_of(announcement: Announcement | None) -> int:
    return 0 if announcement is None or announcement.signed is None else len(announcement.signed.message)


def pack_cache(announcements: Iterable[Announcement]) -> bytes:
    """The content of the cache file: as many announcements as fit the size limit for reading it."""
    entries: list[str] = []
    left = MAX_SERVERS_FILE - len("[]\n")
    for announcement in announcements:
        entry = as_json(pack_entry(announcement))
        size = len(entry.encode()) + len(", ")
        if size <= left:
            entries.append(entry)
            left -= size
    return f"[{', '.join(entries)}]\n".encode()


def parse_cache(data: bytes) -> list[Announcement]:
    """The announcements in a cache file. Unusable entries are skipped; FormatError if it is not a list."""
    content = parse_yaml(data)
    if content is None:
        return []
    if not isinstance(content, list):
        raise FormatError("a cache of announcements is a list")
    return parse_entries(content)


def pack_entry(announcement: Announcement) -> dict[str, object]:
    """One entry of a cache."""
    return {"ann": dict(announcement.fields), "key_s": str(announcement.server_id)}


def parse_entries(entries: Sequence[object]) -> list[Announcement]:
    """The announcements in the entries of a cache, MAX_ANNOUNCEMENTS at most. Unusable ones are skipped."""
    found = []
    for entry in entries[:MAX_ANNOUNCEMENTS]:
        if isinstance(entry, dict) and isinstance(entry.get("key_s"), str):
            try:
                found.append(parse_fields(ServerId(entry["key_s"]), entry.get("ann")))
            except FormatError:
                continue
    return found


def read_cache(path: Path) -> list[Announcement]:
    """The announcements in that file; none if it does not exist or cannot be read, because it is only a cache."""
    try:
        data = read_limited(path)
        return [] if data is None else parse_cache(data)
    except (FormatError, OSError):
        return []


def parse_static_servers(data: bytes) -> list[Announcement]:
    """The servers in the text of a servers file; FormatError with the name of the first unusable entry."""
    content = parse_yaml(data)
    if content is None:
        return []
    section = content.get("storage") if isinstance(content, dict) else content
    entries = {} if section is None else section
    if not isinstance(entries, dict):
        raise FormatError("a servers file has one section, `storage`, of servers by their id")
    if len(entries) > MAX_ANNOUNCEMENTS:
        raise FormatError(f"a servers file with more than {MAX_ANNOUNCEMENTS} servers")
    return [_parse_entry(str(name), entry) for name, entry in entries.items()]


def _parse_entry(name: str, entry: object) -> Announcement:
    if not isinstance(entry, dict) or "ann" not in entry:
        raise FormatError(f"server {name[:100]!r} has no `ann` section")
    if not name.isprintable():
        raise FormatError(f"server id {name[:100]!r} has characters that cannot be printed")
    try:
        announcement = parse_fields(ServerId(name), entry["ann"])
        storage_furl(announcement)
    except FormatError as error:
        raise FormatError(f"server {name[:100]!r}: {error}") from error
    return announcement


def read_static_servers(path: Path) -> list[Announcement]:
    """The servers in that file, none if it does not exist; ConfigError with the file's name if it is unusable."""
    try:
        data = read_limited(path)
        return [] if data is None else parse_static_servers(data)
    except FormatError as error:
        raise ConfigError(f"{path}: {error}") from error
