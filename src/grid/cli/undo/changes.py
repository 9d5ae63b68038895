"""A change to directories, as a value and as a line of the journal. Pure.

A line contains write capabilities of directories. Parsing raises only FormatError, whose messages quote nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from grid.caps import DirectoryCap, parse_cap
from grid.cli.webapi.shapes import describe_link, parse_child
from grid.directory.edits import read_only
from grid.directory.metadata import pack_metadata, seconds_in
from grid.directory.names import normalize_name
from grid.directory.pack import Child
from grid.errors import FormatError, GridError
from grid.values import field, frozen

MAX_NUMBER = 2**53
MAX_TEXT = 2**16
"""Characters of a path or a name in a line."""


@frozen(kw_only=True)
class ChangedLink:
    """One changed entry of a directory. shown: its path for messages, without a capability.

    old, new: the entry before and after the change, or None.
    """

    directory: DirectoryCap = field(repr=False)
    name: str
    shown: str
    old: Child | None
    new: Child | None

    @property
    def key(self) -> tuple[DirectoryCap, str]:
        """Identifies the entry."""
        return self.directory, self.name

    def is_left(self, there: Child | None) -> bool:
        """Whether the current entry is still the one that the change left."""
        return same_child(there, self.new)


@frozen(kw_only=True)
class Change:
    """What one command did. client: its client directory. links: in the order of the changes."""

    number: int
    time: float
    command: str
    client: str
    links: Sequence[ChangedLink]


def same_child(one: Child | None, other: Child | None) -> bool:
    """Whether both are absent or lead to the same object; a directory may keep only the read capability."""
    if one is None or other is None:
        return one is other
    return one.target == other.target or one.target == read_only(other.target)


def pack_change(change: Change) -> bytes:
    """Pack the change as a line."""
    links = [
        {
            "directory": link.directory.to_string(),
            "name": link.name,
            "path": link.shown,
            "old": _pack_child(link.old),
            "new": _pack_child(link.new),
        }
        for link in change.links
    ]
    line = {
        "number": change.number,
        "time": change.time,
        "command": change.command,
        "client": change.client,
        "links": links,
    }
    return json.dumps(line).encode("ascii") + b"\n"


def parse_change(line: bytes) -> Change:
    """Parse a line; FormatError."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise FormatError("not JSON") from None
    match value:
        case {"number": int(number), "time": time, "command": command, "client": client, "links": list(links)}:
            moment = seconds_in(time)
            if moment is None or isinstance(number, bool) or not 0 < number < MAX_NUMBER:
                raise FormatError("an invalid number or time")
            return Change(
                number=number,
                time=moment,
                command=_text(command),
                client=_text(client),
                links=[_parse_link(link) for link in links],
            )
    raise FormatError("not a change")


def _pack_child(child: Child | None) -> list[object] | None:
    return None if child is None else describe_link(child.target, child.metadata)


def _parse_link(value: object) -> ChangedLink:
    match value:
        case {"directory": str(directory), "name": str(name), "path": path, "old": old, "new": new}:
            try:
                cap = parse_cap(directory)
                if not isinstance(cap, DirectoryCap) or cap.authority != "write":
                    raise FormatError("not the write capability of a directory")
                return ChangedLink(
                    directory=cap,
                    name=normalize_name(name),
                    shown=_text(path),
                    old=_parse_child(old),
                    new=_parse_child(new),
                )
            except FormatError:
                raise
            except GridError:
                raise FormatError("a malformed link") from None
    raise FormatError("a malformed link")


def _parse_child(value: object) -> Child | None:
    if value is None:
        return None
    try:
        child = parse_child(value, deep_immutable=False)
    except GridError:
        raise FormatError("a malformed entry") from None
    pack_metadata(child.metadata)  # Raises for metadata that no directory can hold.
    return child


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise FormatError("invalid or overlong text")
    return value
