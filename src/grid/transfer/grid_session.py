"""One grid client for all ends of a transfer, with checks of many files at once.

The client runs on Twisted's reactor, in a separate thread; transfers run on asyncio. It owns the calls between the two.
All checks start together, so requests for many files share one message to each server. [decision 91]
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from attrs import evolve
from twisted.internet.defer import Deferred

from grid.caps import KnownCap, SliceCap
from grid.directory.file_store import FileStore
from grid.errors import GridError
from grid.immutable.check import CheckResult
from grid.library.reactor_thread import submit
from grid.node.client import Client, LiveServers
from grid.node.config import ClientSettings
from grid.node.directory import NodeDirectory
from grid.runtime import ReactorClock, RealRuntime, SystemEntropy, ThreadCpuPool
from grid.values import frozen

T = TypeVar("T")


class GridSession:
    """One grid client for all ends of a transfer, on the reactor's thread."""

    def __init__(self, directory: NodeDirectory, reactor: Any, *, unique: bool = True) -> None:  # noqa: ANN401
        """unique: whether new files get random keys."""
        self._directory, self._reactor, self.is_unique = directory, reactor, unique
        self._client: Client | None = None
        self._store: FileStore | None = None
        self._opening = asyncio.Lock()
        self._pool = ThreadCpuPool(reactor)

    @property
    def settings(self) -> ClientSettings:
        """How the client puts files."""
        return self._directory.settings.client

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the reactor and return its result."""
        return await asyncio.wrap_future(submit(self._reactor, coroutine))

    def ask(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Run a coroutine on asyncio and return its result. Call it on the reactor."""
        future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        answer: Deferred[T] = Deferred(lambda _: _cancel(future))

        def ended(done: Future[T]) -> None:
            if answer.called:
                return
            if done.cancelled():
                answer.cancel()  # The asyncio loop is closing: nothing else would wake the waiting task.
            else:
                error = done.exception()
                answer.errback(error) if error is not None else answer.callback(done.result())

        def done(finished: Future[T]) -> None:
            with suppress(RuntimeError):  # The reactor has ended with the process.
                self._reactor.callFromThread(ended, finished)

        future.add_done_callback(done)
        return answer

    async def store(self) -> FileStore:
        """The store, once servers are known; NoServersError, ConfigError."""
        async with self._opening:
            if self._store is None:
                self._store = await self.run(self._open())
        return self._store

    async def close(self) -> None:
        """Close all connections."""
        client, self._client, self._store = self._client, None, None
        if client is not None:
            await self.run(client.close())
            await asyncio.to_thread(self._pool.stop)

    async def _open(self) -> FileStore:
        runtime = RealRuntime(clock=ReactorClock(self._reactor), cpu=self._pool, entropy=SystemEntropy())
        # A second attempt reuses the first one's client, whose connections may be in progress.
        client = self._client = self._client or Client(self._directory, runtime, self._reactor)
        await client.servers()
        is_mdmf = self._directory.settings.client.mutable_format == "MDMF"
        grid = client.grid(LiveServers(client))
        if self.is_unique:
            grid = evolve(grid, convergence=None)
        return FileStore(grid=grid, mutable_format="mdmf" if is_mdmf else "sdmf")


@frozen
class Doubt:
    """Why a file is not known to be healthy. is_certain: enough servers answered to know that it is not."""

    why: str
    is_certain: bool


async def check_files(
    session: GridSession, store: FileStore, caps: Mapping[str, KnownCap | None]
) -> Mapping[str, Doubt]:
    """Check files by name and return the doubtful ones. None: the file is gone.

    A pack is checked once for all its files.
    """
    subjects = {name: cap.pack if isinstance(cap, SliceCap) else cap for name, cap in caps.items()}
    asked = {cap.to_string(): cap for cap in subjects.values() if cap is not None}
    answers = await asyncio.gather(*(session.run(_examine(store, cap)) for cap in asked.values()))
    doubts: dict[str, Doubt | None] = dict(zip(asked, answers, strict=True))
    found = {
        name: Doubt("it is not linked any more", True) if cap is None else doubts[cap.to_string()]
        for name, cap in subjects.items()
    }
    return {name: doubt for name, doubt in found.items() if doubt is not None}


async def _examine(store: FileStore, cap: KnownCap) -> Doubt | None:
    try:
        health = await store.check(cap)
    except GridError as error:
        return Doubt(str(error), False)
    if health.healthy:
        return None
    answered = len(health.responding) if isinstance(health, CheckResult) else health.expected
    return Doubt(health.summary, answered >= min(health.expected, len(store.grid.servers)))


def _cancel(future: Future[T]) -> None:
    future.cancel()
