"""Stores of whole shares that share messages: what is asked for while one message is on its way goes in the next.

Nothing waits for company but until the next turn of the event loop, which brings what was asked for in this one. So
one file alone is stored in one round trip, and of many at once each message carries many: the fewer messages, the
less each share costs, and the fewer times the server waits for its disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from attrs import define
from twisted.internet.defer import Deferred, DeferredList, ensureDeferred
from twisted.python.failure import Failure

from grid.limits import STORE_CALL_BYTES, STORE_CALL_SHARES
from grid.ports import Clock, NewShares, ShareWrite, StorageServer, StoreAnswer
from grid.runtime import Tasks

MESSAGES_IN_FLIGHT = 2
"""One being stored while the next one travels."""

SendStores = Callable[[Sequence[NewShares]], Awaitable[Sequence[StoreAnswer]]]
"""Sends one message, and returns an answer for each store in it, in order."""


@define(eq=False)
class _Waiting:
    new: NewShares
    answer: Deferred[StoreAnswer]
    is_sent: bool = False


class StoreQueue:
    """The stores that go to one server."""

    def __init__(self, send: SendStores, clock: Clock) -> None:
        self._send = send
        self._clock = clock
        self._is_due = False
        self._waiting: deque[_Waiting] = deque()
        self._in_flight = 0
        self._tasks = Tasks()
        self._given_up = False

    @property
    def is_doubtful(self) -> bool:
        """Whether somebody gave up waiting for an answer, and none has come since."""
        return self._given_up

    async def store(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        """The answers, in order; the first error is raised once all have ended."""
        answers = [self._join(new) for new in stores]
        self._send_soon()
        if len(answers) == 1:
            return [await answers[0]]
        outcomes = await DeferredList(answers, consumeErrors=True)
        for _, outcome in outcomes:
            if isinstance(outcome, Failure):
                outcome.raiseException()
        return [outcome for _, outcome in outcomes]

    def _join(self, new: NewShares) -> Deferred[StoreAnswer]:
        waiting = _Waiting(new, Deferred(lambda _: self._give_up(waiting)))
        self._waiting.append(waiting)
        return waiting.answer

    def _give_up(self, waiting: _Waiting) -> None:
        if waiting.is_sent:
            self._given_up = True
        else:
            self._waiting.remove(waiting)

    def _send_soon(self) -> None:
        if not self._is_due and self._in_flight < MESSAGES_IN_FLIGHT:
            self._is_due = True
            self._clock.call_later(0, self._send_on)

    def _send_on(self) -> None:
        self._is_due = False
        while self._waiting and self._in_flight < MESSAGES_IN_FLIGHT:
            message = self._take()
            self._in_flight += 1
            self._tasks.start(
                self._send_one([waiting.new for waiting in message]),
                lambda answers, message=message: self._answered(message, answers),  # type: ignore[misc]
                lambda error, message=message: self._failed(message, error),  # type: ignore[misc]
            )

    async def _send_one(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        return await self._send(stores)

    def _take(self) -> list[_Waiting]:
        """As many as fit one message, at least one."""
        message: list[_Waiting] = []
        size = count = 0
        while self._waiting:
            new = self._waiting[0].new
            size += new.size
            count += len(new.shares)
            if message and (size > STORE_CALL_BYTES or count > STORE_CALL_SHARES):
                break
            waiting = self._waiting.popleft()
            waiting.is_sent = True
            message.append(waiting)
        return message

    def _answered(self, message: Sequence[_Waiting], answers: Sequence[StoreAnswer]) -> None:
        self._in_flight -= 1
        self._given_up = False
        self._send_soon()
        for waiting, answer in zip(message, answers, strict=True):
            if not waiting.answer.called:
                waiting.answer.callback(answer)

    def _failed(self, message: Sequence[_Waiting], error: BaseException) -> None:
        self._in_flight -= 1
        self._send_soon()
        for waiting in message:
            if not waiting.answer.called:
                waiting.answer.errback(error)


async def store_by_steps(server: StorageServer, new: NewShares) -> StoreAnswer:
    """Store whole shares on a server that wants them allocated, written and closed one after the other."""
    numbers = frozenset(new.shares)
    allocation = await server.allocate(new.storage_index, new.secrets, numbers, new.share_size)
    upload = allocation.upload
    if allocation.already or upload.share_numbers != numbers:
        await upload.abort()
        return StoreAnswer(already=allocation.already, stored=False)
    try:
        await upload.write([ShareWrite(number, 0, pieces) for number, pieces in new.shares.items()])
        await upload.close(numbers)
    except BaseException:
        # Not awaited: whoever gave this up does not want to wait, and a server that failed may not answer.
        ensureDeferred(upload.abort()).addErrback(lambda _: None)
        raise
    return StoreAnswer(already=frozenset(), stored=True)
