"""New private keys, made before they are asked for where many files are made one after the other.

Finding a key takes longer than all else about a new directory. Who asks for a second one within SOON_S will ask for more:
from then on the next one is made while the last one's file is on its way; where that is a large file, which has a use for
every processor, after it. A process that makes one file makes one key.
"""

from __future__ import annotations

from collections import deque

from twisted.internet.defer import Deferred

from grid.crypto.rsa import PrivateKey, generate_key
from grid.engine.grid import Grid
from grid.ports import Runtime
from grid.runtime import Tasks

SOON_S = 600.0
"""Who asks again within this time will go on asking; a key costs some 50 ms, and a kilobyte or two to keep."""


class KeySupply:
    """Makes keys on the processor pool; `take` gives each of them once."""

    def __init__(self) -> None:
        self._tasks = Tasks()
        self._being_made = 0
        self._ready: deque[PrivateKey] = deque()
        self._waiting: deque[Deferred[PrivateKey]] = deque()
        self._asked_at: float | None = None
        self._is_asked_often = False

    async def take(self, runtime: Runtime, *, ahead: bool = True) -> PrivateKey:
        """A key that nobody else gets; the errors of the pool. ahead: the next one may be begun now."""
        now = runtime.clock.now()
        self._is_asked_often = self._asked_at is not None and now - self._asked_at < SOON_S
        self._asked_at = now
        wanted: Deferred[PrivateKey] = Deferred(self._waiting.remove)
        self._waiting.append(wanted)
        self._hand_out()
        self._make_enough(runtime, ahead=ahead)
        return await wanted

    def make_ahead(self, runtime: Runtime) -> None:
        """Begin the next key, if it is likely to be asked for and not there."""
        self._make_enough(runtime, ahead=True)

    def _make_enough(self, runtime: Runtime, *, ahead: bool) -> None:
        # One thread of the pool is left to whatever else there is to do.
        more = 1 if ahead and self._is_asked_often and runtime.cpu.width > 1 else 0
        while len(self._ready) + self._being_made < len(self._waiting) + more:
            self._being_made += 1
            self._tasks.start(self._make(runtime), self._made, self._failed)

    async def _make(self, runtime: Runtime) -> PrivateKey:
        return await runtime.cpu.run(generate_key)

    def _made(self, key: PrivateKey) -> None:
        # Counted first: who gets the key may ask for the next one at once.
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
    """A new private key, from the supply of this grid; see KeySupply.take."""
    return await grid.remembered.of(KeySupply).take(grid.runtime, ahead=ahead)


def make_key_ahead(grid: Grid) -> None:
    """Begin the key that new_key left for later."""
    grid.remembered.of(KeySupply).make_ahead(grid.runtime)
