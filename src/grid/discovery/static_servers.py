"""Servers that a file names: `private/servers.yaml`. [spec wire 10]"""

from __future__ import annotations

from pathlib import Path

from grid.discovery.announcement import Announcement, parse_fields, storage_furl
from grid.discovery.yaml_files import parse_yaml, read_limited
from grid.errors import ConfigError, FormatError
from grid.limits import MAX_ANNOUNCEMENTS
from grid.ports import ServerId


def parse_static_servers(data: bytes) -> list[Announcement]:
    """The servers in the text of a servers file; FormatError naming the first entry that cannot be used."""
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
    """The servers in that file, none if there is none; ConfigError naming the file if it cannot be used."""
    try:
        data = read_limited(path)
        return [] if data is None else parse_static_servers(data)
    except FormatError as error:
        raise ConfigError(f"{path}: {error}") from error
