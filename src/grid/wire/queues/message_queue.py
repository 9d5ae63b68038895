"""Questions and stores that share messages: those made while messages are on their way go into the next one.

A call waits for others only until the next turn of the event loop, which sends what this turn has requested. So
one file alone takes one round trip, and with many at once each message carries many: the fewer messages, the less
each file costs either side.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from grid.errors import PeerError
from grid.ports import Clock
from grid.runtime import Tasks
from grid.values import define

MESSAGES_IN_FLIGHT = 2
"""One is being answered while the next one travels."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@define(eq=False)
class _Waiting(Generic[Item, Answer]):
    item: Item
    answer: Deferred[Answer]
    is_sent: bool = False


class MessageQueue(Generic[Item, Answer]):
    """Sends items to one server, several in one message."""

    def __init__(
        self,
        send: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]],
        weigh: Callable[[Item], tuple[int, int]],
        limits: tuple[int, int],
        clock: Clock,
    ) -> None:
        """send: sends one message, and returns an answer for each of its items, in order.

        weigh: two sizes of an item; their sums in one message must not exceed the limits.
        """
        self._send = send
        self._weigh = weigh
        self._limits = limits
        self._clock = clock
        self._is_due = False
        self._waiting: deque[_Waiting[Item, Answer]] = deque()
        self._in_flight = 0
        self._tasks = Tasks()
        self._given_up = False

    @property
    def is_doubtful(self) -> bool:
        """Whether some caller gave up, no answer has come since, and messages from before that are still under way."""
        return self._given_up

    async def ask(self, items: Sequence[Item]) -> Sequence[Answer]:
        """Send the items and return the answers, in order. After all have ended, the first error is raised."""
        answers = [self._join(item) for item in items]
        self._send_soon()
        if len(answers) == 1:
            return [await answers[0]]
        outcomes = await DeferredList(answers, consumeErrors=True)
        for _, outcome in outcomes:
            if isinstance(outcome, Failure):
                outcome.raiseException()
        return [outcome for _, outcome in outcomes]

    def _join(self, item: Item) -> Deferred[Answer]:
        waiting: _Waiting[Item, Answer] = _Waiting(item, Deferred(lambda _: self._give_up(waiting)))
        self._waiting.append(waiting)
        return waiting.answer

    def _give_up(self, waiting: _Waiting[Item, Answer]) -> None:
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
                self._send_one([waiting.item for waiting in message]),
                lambda answers, message=message: self._answered(message, answers),  # type: ignore[misc]
                lambda error, message=message: self._failed(message, error),  # type: ignore[misc]
            )

    async def _send_one(self, items: Sequence[Item]) -> Sequence[Answer]:
        answers = await self._send(items)
        if len(answers) != len(items):
            raise PeerError(f"{len(answers)} answers to a message with {len(items)} calls")
        return answers

    def _take(self) -> list[_Waiting[Item, Answer]]:
        """Take as many items as fit one message, at least one."""
        message: list[_Waiting[Item, Answer]] = []
        size = count = 0
        while self._waiting:
            more_size, more_count = self._weigh(self._waiting[0].item)
            size += more_size
            count += more_count
            if message and (size > self._limits[0] or count > self._limits[1]):
                break
            waiting = self._waiting.popleft()
            waiting.is_sent = True
            message.append(waiting)
        return message

    def _answered(self, message: Sequence[_Waiting[Item, Answer]], answers: Sequence[Answer]) -> None:
        self._in_flight -= 1
        self._given_up = False
        self._send_soon()
        for waiting, answer in zip(message, answers, strict=True):
            if not waiting.answer.called:
                waiting.answer.callback(answer)

    def _failed(self, message: Sequence[_Waiting[Item, Answer]], error: BaseException) -> None:
        self._in_flight -= 1
        if not self._in_flight:
            self._given_up = False  # From now on it is a new connection, which is not in doubt.
        self._send_soon()
        for waiting in message:
            if not waiting.answer.called:
                waiting.answer.errback(error)
