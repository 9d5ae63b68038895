"""Stores and questions about small files that share messages, and the fallback for servers that do not support them.

The fewer messages, the less each share costs, and the less often the server waits for its disk.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from twisted.internet.defer import ensureDeferred

from grid.limits import FIND_CALL_FILES, FIND_FILE_BYTES, STORE_CALL_BYTES, STORE_CALL_SHARES
from grid.ports import (
    Allocation,
    Clock,
    Find,
    LeaseSecrets,
    NewShares,
    ShareNumber,
    ShareWrite,
    StorageIndex,
    StoreAnswer,
)
from grid.wire.packed.find_messages import MAX_FIND_RANGES, Found
from grid.wire.queues.message_queue import MessageQueue

SendStores = Callable[[Sequence[NewShares]], Awaitable[Sequence[StoreAnswer]]]
"""Sends one message, and returns an answer for each of its stores, in order."""

StoreQueue = MessageQueue[NewShares, StoreAnswer]


def store_queue(send: SendStores, clock: Clock) -> StoreQueue:
    """The stores for one server."""
    return MessageQueue(send, lambda new: (new.size, len(new.shares)), (STORE_CALL_BYTES, STORE_CALL_SHARES), clock)


class Allocator(Protocol):
    """Allocates room for new shares: a StorageServer."""

    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        """Allocate room for new shares."""


async def store_by_steps(server: Allocator, new: NewShares) -> StoreAnswer:
    """Store whole shares on a server that needs separate calls to allocate, write and close."""
    numbers = frozenset(new.shares)
    allocation = await server.allocate(new.storage_index, new.secrets, numbers, new.share_size)
    upload = allocation.upload
    if allocation.already or upload.share_numbers != numbers:
        await upload.abort()
        return StoreAnswer(already=allocation.already, stored=False)
    try:
        await upload.finish([ShareWrite(number, 0, pieces) for number, pieces in new.shares.items()])
    except BaseException:
        # Not awaited: the caller gave up and does not want to wait, and a server that failed may not answer.
        ensureDeferred(upload.abort()).addErrback(lambda _: None)
        raise
    return StoreAnswer(already=frozenset(), stored=True)


FindQueue = MessageQueue[Find, Found | None]

SendFinds = Callable[[Sequence[Find]], Awaitable[Sequence[Found | None]]]
"""Sends one message, and returns an answer for each of its questions, in order."""


def find_queue(send: SendFinds, clock: Clock) -> FindQueue:
    """The questions for one server."""
    return MessageQueue(send, lambda find: (1, 0), (FIND_CALL_FILES, 0), clock)


async def ask_together(find: Find, queue: FindQueue) -> Found | None:
    """The answer to a question in a shared message; None if the question must be sent alone.

    That is the case if it asks for much, if a caller gave up on such answers, or if the server's lookup
    failed, so that a message of its own gets the reason.
    """
    is_small = len(find.ranges) <= MAX_FIND_RANGES and sum(length for _, length in find.ranges) <= FIND_FILE_BYTES
    if not is_small or queue.is_doubtful:
        return None
    (found,) = await queue.ask([find])
    return found
