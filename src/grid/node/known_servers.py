"""The servers that a client's introducers announced, taken from one client directory and given to another.

A client uses them while an introducer cannot be reached, as its own cache. [spec wire 9] The cache keeps no signatures,
so pass on only servers whose origin is proven.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from grid.discovery.announcement import STORAGE_SERVICE, Announcement, identify, replaces
from grid.discovery.server_files import pack_cache, read_cache
from grid.errors import FormatError
from grid.limits import MAX_ANNOUNCEMENTS
from grid.node.directory import NodeDirectory
from grid.node.files import write_atomically
from grid.node.introducers import cache_file, read_introducers
from grid.wire.locators import Furl, parse_furl


def known_servers(directory: NodeDirectory) -> dict[str, list[Announcement]]:
    """The usable servers that each introducer announced last, by its FURL; ConfigError.

    Introducers of which nothing is known are left out.
    """
    found = {}
    for petname, furl in read_introducers(directory).items():
        servers = usable_servers(read_cache(cache_file(directory.private, petname)))
        if servers:
            found[furl.to_string()] = servers
    return found


def usable_servers(announcements: Sequence[Announcement]) -> list[Announcement]:
    """Those that announce a storage server that a client can reach; at most MAX_ANNOUNCEMENTS."""
    found = []
    for each in announcements[:MAX_ANNOUNCEMENTS]:
        if each.service_name == STORAGE_SERVICE:
            with suppress(FormatError):
                identify(each, 0.0)
                found.append(each)
    return found


def remember_servers(directory: NodeDirectory, servers: Mapping[str, Sequence[Announcement]]) -> int:
    """Add servers, by the FURL of their introducer, to what the directory knows; the number that were new or newer.

    Servers of introducers that the directory does not have are ignored, and so are older announcements. ConfigError;
    OSError.
    """
    petnames = {_identity(furl): petname for petname, furl in read_introducers(directory).items()}
    count = 0
    for text, new in servers.items():
        petname = petnames.get(_identity(parse_furl(text)))
        if petname is not None:
            count += _merge(cache_file(directory.private, petname), usable_servers(new))
    return count


def _identity(furl: Furl) -> tuple[str, str]:
    """What stays the same when an introducer moves to another address."""
    return furl.tub_id, furl.swissnum


def _merge(path: Path, new: Sequence[Announcement]) -> int:
    kept = {(each.service_name, each.server_id): each for each in read_cache(path)}
    is_first = not kept
    count = 0
    for each in new:
        place = (each.service_name, each.server_id)
        if replaces(each, kept.get(place)):
            kept[place] = each
            count += 1
    if count:
        write_atomically(path, pack_cache(kept.values()))
    if count and is_first:
        os.utime(path, (0, 0))  # Old news: reads ask the introducer first, as long as there is one.
    return count
