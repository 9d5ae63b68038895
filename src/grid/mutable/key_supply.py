"""New private keys, made in advance while many files are created one after the other.

Finding a key takes longer than everything else about a new directory. A caller that asks for a second key within SOON_S will
probably ask for more. From then on the next key is made while the last one's file is uploaded or, if that file is large and
needs every processor, after it. A process that creates one file makes one key.
"""

from __future__ import annotations

from collections import deque

from twisted.internet.defer import Deferred

from grid.crypto.rsa import PrivateKey, generate_key
from grid.engine.grid import Grid
from grid.ports import Runtime
from grid.runtime import Tasks

SOON_S = 600.0
"""A caller that asks again within this time probably continues. A key takes some 50 ms to make, and 1 or 2 kB to keep."""


class KeySupply:
    """Makes keys on the processor pool. `take` returns each key once."""

    def __init__(self) -> None:
        self._tasks = Tasks()
        self._being_made = 0
        self._ready: deque[PrivateKey] = deque()
        self._waiting: deque[Deferred[PrivateKey]] = deque()
        self._asked_at: float | None = None
        self._is_asked_often = False

    async def take(self, runtime: Runtime, *, ahead: bool = True) -> PrivateKey:
        """Return a key that no other caller gets; raises the errors of the pool. ahead: whether the next key may be started now."""
        now = runtime.clock.now()
        self._is_asked_often = self._asked_at is not None and now - self._asked_at < SOON_S
        self._asked_at = now
        wanted: Deferred[PrivateKey] = Deferred(self._waiting.remove)
        self._waiting.append(wanted)
        self._hand_out()
        self._make_enough(runtime, ahead=ahead)
        return await wanted

    def make_ahead(self, runtime: Runtime) -> None:
        """Start making the next key, if it is likely to be needed and does not exist yet."""
        self._make_enough(runtime, ahead=True)

    def _make_enough(self, runtime: Runtime, *, ahead: bool) -> None:
        # Leave one thread of the pool for other work.
        more = 1 if ahead and self._is_asked_often and runtime.cpu.width > 1 else 0
        while len(self._ready) + self._being_made < len(self._waiting) + more:
            self._being_made += 1
            self._tasks.start(self._make(runtime), self._made, self._failed)

    async def _make(self, runtime: Runtime) -> PrivateKey:
        return await runtime.cpu.run(generate_key)

    def _made(self, key: PrivateKey) -> None:
        # Count first, because the caller that gets this key may ask for the next one at once.
        self._being_made -= 1
        self._ready.append(key)
        self._hand_out()

    def _hand_out(self) -> None:
        while self._ready and self._waiting:
            self._waiting.popleft().callback(self._ready.popleft())

    def _failed(self, error: BaseException) -> None:
        self._being_made -= 1
        if self._waiting:
            self._waiting.popleft().errback(error)


async def new_key(grid: Grid, *, ahead: bool = True) -> PrivateKey:
    """Return a new private key from the supply of this grid; see KeySupply.take."""
    return await grid.remembered.of(KeySupply).take(grid.runtime, ahead=ahead)


def make_key_ahead(grid: Grid) -> None:
    """Start making the key that new_key left for later."""
    grid.remembered.of(KeySupply).make_ahead(grid.runtime)
