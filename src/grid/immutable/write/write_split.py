"""Cutting the writes for one server into messages that no limit forbids. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from grid.ports import Buffer, ShareWrite


def split_writes(writes: Sequence[ShareWrite], limit: int) -> list[list[ShareWrite]]:
    """The same bytes at the same offsets, in order, in as few messages of at most `limit` bytes as it takes.

    Nearly always one message, with the writes as they were given; what is cut is cut as views.
    """
    if sum(write.size for write in writes) <= limit:
        return [list(writes)]
    messages: list[list[ShareWrite]] = [[]]
    room = limit
    for write in writes:
        offset = write.offset
        pieces: list[Buffer] = []
        for piece in write.pieces:
            view = memoryview(piece)
            while len(view) > room:
                pieces.append(view[:room])
                messages[-1].append(ShareWrite(write.share_number, offset, pieces))
                offset += sum(len(part) for part in pieces)
                view, pieces, room = view[room:], [], limit
                messages.append([])
            pieces.append(view)
            room -= len(view)
        messages[-1].append(ShareWrite(write.share_number, offset, pieces))
    return messages
