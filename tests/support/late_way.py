"""One client's way to a server of slots, over which calls and answers travel as long as a test says.

A call that the client has given up on arrives all the same: what was sent cannot be called back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from twisted.internet.defer import Deferred

from grid.ports import (
    Buffer,
    Clock,
    Range,
    ShareNumber,
    SlotAnswer,
    SlotSecrets,
    StorageIndex,
    StorageServer,
    TestWrite,
)
from tests.support.scripted_storage import Behaviour, ScriptedStorage

T = TypeVar("T")

Travel = Callable[[str], tuple[float, float]]
"""(name of the call) -> seconds until it arrives, seconds until its answer is back."""

SOON = (0.01, 0.01)


class LateWay(ScriptedStorage):
    """arrived: the calls that have reached the server."""

    def __init__(self, inner: StorageServer, clock: Clock, travel: Travel = lambda call: SOON) -> None:
        super().__init__(str(inner.identity.server_id), clock)
        self.identity = inner.identity
        self.travel = travel
        self.arrived: list[str] = []
        self._inner = inner

    @property
    def behaviour(self) -> Behaviour:
        return Behaviour()

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        return await self._carry("read_slot", lambda: self._inner.read_slot(storage_index, share_numbers, ranges))

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        return await self._carry(
            "test_and_write", lambda: self._inner.test_and_write(storage_index, secrets, writes, ranges)
        )

    async def _carry(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        there_s, back_s = self.travel(name)
        answer: Deferred[T] = Deferred()

        async def run() -> None:
            self.arrived.append(name)
            try:
                result = await call()
            except Exception as error:
                self._clock.call_later(back_s, partial(answer.errback, error))
            else:
                self._clock.call_later(back_s, partial(answer.callback, result))

        def arrive() -> None:
            Deferred.fromCoroutine(run())

        self._clock.call_later(there_s, arrive)
        return await answer
