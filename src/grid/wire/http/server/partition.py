"""Cuts a batched read into groups that are read, and sent, one after the other. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import frozen

from grid.ports import Range, ShareNumber


@frozen
class Part:
    """A part of one range of one share. begins_share: nothing of the share comes before it."""

    share_number: ShareNumber
    offset: int
    length: int
    begins_share: bool
    ends_range: bool


def partition(
    wants: Mapping[ShareNumber, Sequence[Range]], group_size: Callable[[], int]
) -> Iterator[tuple[list[Part], bool]]:
    """Groups of parts in the order of the request, with whether each is the last; no group exceeds its size in bytes.

    group_size is asked when a group is begun. There is at least one group, perhaps empty.
    """
    group: list[Part] = []
    room = group_size()
    for share_number, ranges in wants.items():
        begins = True
        for offset, length in ranges:
            position = 0
            while True:
                if not room:
                    yield group, False
                    group, room = [], group_size()
                taken = min(room, length - position)
                position += taken
                group.append(Part(share_number, offset + position - taken, taken, begins, position == length))
                room -= taken
                begins = False
                if position == length:
                    break
    yield group, True
