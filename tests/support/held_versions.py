"""Versions of a mutable file on in-memory servers, by the headers of their shares."""

from __future__ import annotations

from collections.abc import Sequence

from grid.errors import FormatError
from grid.mutable.share.layout import parse_header
from grid.mutable.share.prefix import Prefix
from grid.ports import Buffer
from tests.support.scripted_slots import SlotServer


def versions_held(index: bytes, servers: Sequence[SlotServer]) -> dict[Prefix, set[int]]:
    """The versions of the file at that index, and the share numbers of each."""
    held: dict[Prefix, set[int]] = {}
    for server in servers:
        for number, data in server.slots.get(index, {}).items():
            try:
                held.setdefault(parse_header(data)[0], set()).add(number)
            except FormatError:
                continue
    return held


def whole_versions(index: bytes, servers: Sequence[SlotServer], total: int) -> list[Prefix]:
    """The versions that readers can know these servers, of `total`, to hold whole.

    All shares of an empty version are alike: none proves its number, and a server counts for its even part of the file.
    What was acknowledged is on enough servers all the same.
    """
    whole = []
    for prefix, numbers in versions_held(index, servers).items():
        count = len(numbers)
        if not prefix.size:
            part = -(-prefix.n // total)
            count = min(count, sum(min(part, len(versions_held(index, [s]).get(prefix, ()))) for s in servers))
        if count >= prefix.k:
            whole.append(prefix)
    return whole


def is_of(data: Buffer, prefix: Prefix) -> bool:
    """Whether a share is of that version."""
    try:
        return parse_header(data)[0] == prefix
    except FormatError:
        return False
