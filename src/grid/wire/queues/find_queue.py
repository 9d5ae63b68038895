"""Questions about small files that share messages, and which of them do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from grid.limits import FIND_CALL_FILES, FIND_FILE_BYTES
from grid.ports import Clock, Find
from grid.wire.packed.finds import MAX_FIND_RANGES, Found
from grid.wire.queues.message_queue import MessageQueue

FindQueue = MessageQueue[Find, Found | None]

SendFinds = Callable[[Sequence[Find]], Awaitable[Sequence[Found | None]]]
"""Sends one message, and returns an answer for each question in it, in order."""


def find_queue(send: SendFinds, clock: Clock) -> FindQueue:
    """The questions that go to one server."""
    return MessageQueue(send, lambda find: (1, 0), (FIND_CALL_FILES, 0), clock)


async def ask_together(find: Find, queue: FindQueue) -> Found | None:
    """The answer to a question asked in company; None if it is to be asked alone.

    That is so where much is asked for, where somebody gave up waiting for such answers, and where the server could not
    look, so that it says why.
    """
    is_small = len(find.ranges) <= MAX_FIND_RANGES and sum(length for _, length in find.ranges) <= FIND_FILE_BYTES
    if not is_small or queue.is_doubtful:
        return None
    (found,) = await queue.ask([find])
    return found
