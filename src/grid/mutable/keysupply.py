"""New private keys, made before they are asked for where many files are made one after the other.

Finding a key takes longer than all else about a new directory. Who asks for a second one within SOON_S will ask for more:
from then on the next one is made while the last one's file is on its way. A process that makes one file makes one key.
"""

from __future__ import annotations

from collections import deque
from weakref import WeakKeyDictionary

from twisted.internet.defer import Deferred

from grid.crypto.rsa import PrivateKey, generate_key
from grid.ports import Runtime
from grid.runtime import Tasks

SOON_S = 10.0
"""Who asks again within this time will go on asking."""


class KeySupply:
    """Makes keys on the processor pool; `take` gives each of them once."""

    def __init__(self) -> None:
        self._tasks = Tasks()
        self._ready: deque[PrivateKey] = deque()
        self._waiting: deque[Deferred[PrivateKey]] = deque()
        self._asked_at: float | None = None

    async def take(self, runtime: Runtime) -> PrivateKey:
        """A key that nobody else gets; the errors of the pool."""
        now = runtime.clock.now()
        often = self._asked_at is not None and now - self._asked_at < SOON_S
        self._asked_at = now
        wanted: Deferred[PrivateKey] = Deferred(self._waiting.remove)
        self._waiting.append(wanted)
        self._hand_out()
        # One thread of the pool is left to whatever else there is to do.
        ahead = 1 if often and runtime.cpu.width > 1 else 0
        while len(self._ready) + self._tasks.count < len(self._waiting) + ahead:
            self._tasks.start(self._make(runtime), on_error=self._failed)
        return await wanted

    async def _make(self, runtime: Runtime) -> None:
        self._ready.append(await runtime.cpu.run(generate_key))
        self._hand_out()

    def _hand_out(self) -> None:
        while self._ready and self._waiting:
            self._waiting.popleft().callback(self._ready.popleft())

    def _failed(self, error: BaseException) -> None:
        if self._waiting:
            self._waiting.popleft().errback(error)


_supplies: WeakKeyDictionary[Runtime, KeySupply] = WeakKeyDictionary()


async def new_key(runtime: Runtime) -> PrivateKey:
    """A new private key, from the supply of this runtime."""
    return await _supplies.setdefault(runtime, KeySupply()).take(runtime)
