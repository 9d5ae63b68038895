"""A door whose gateway's calls to its servers are noted, and held if a test wants that."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from inspect import iscoroutinefunction
from typing import Any, cast

from attrs import define, field
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from grid.directory.file_store import FileStore
from grid.engine.grid import Encoding
from grid.gateway.site import Gateway
from grid.placement.leases import LeaseMaster
from grid.storage.calls.service import StorageService
from tests.gateway.rig import Nobody, Rig
from tests.s3.rig import S3Rig, opened
from tests.support.grids import grid_of

ENCODING = Encoding(k=2, n=4, happy=2, max_segment_size=2**17)
STORES = frozenset({"store_shares", "allocate"})


@define(eq=False)
class Calls:
    """What servers were asked: method and storage index. held: methods whose calls wait."""

    made: list[tuple[str, object]] = field(factory=list)
    held: frozenset[str] = frozenset()
    waiting: list[Deferred[None]] = field(factory=list)

    async def note(self, name: str, about: object) -> None:
        """Note a call, and hold it if it is to wait."""
        self.made.append((name, about))
        if name in self.held:
            self.waiting.append(Deferred())
            await self.waiting[-1]

    def release(self) -> None:
        """Let everything continue, and hold nothing any more."""
        self.held = frozenset()
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            if not each.called:
                each.callback(None)

    def asked(self, *names: str) -> set[object]:
        """The storage indexes that these methods were called for."""
        return {about for name, about in self.made if name in names}


@define(eq=False)
class WatchedServer:
    """A server whose calls are noted, and held if the test wants that."""

    service: StorageService
    calls: Calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.service, name)
        if not iscoroutinefunction(found):
            return found

        async def call(*arguments: Any, **named: Any) -> Any:
            about = arguments[0][0].storage_index if name == "store_shares" else (arguments or (None,))[0]
            await self.calls.note(name, about)
            return await found(*arguments, **named)

        return call


@asynccontextmanager
async def watched_door(beside: S3Rig, *, packs: bool = False) -> AsyncIterator[tuple[S3Rig, Calls]]:
    """The door of another gateway on the same grid, and the calls of that gateway."""
    calls, rig = Calls(), beside.rig
    servers = cast(Any, [WatchedServer(service, calls) for service in rig.servers])
    grid = grid_of(servers, rig.gateway.store.runtime, leases=LeaseMaster(bytes(32)), encoding=ENCODING)
    gateway = Gateway(store=FileStore(grid=grid), client=Nobody(), settings=rig.gateway.settings)
    async with opened(Rig(gateway, rig.factory, 0, rig.servers), beside.accounts, packs=packs) as door:
        try:
            yield door, calls
        finally:
            calls.release()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until it holds."""
    while not condition():
        await deferLater(cast(Any, reactor), 0.001)
