"""Reads a file from the servers known already, and from all servers if those do not suffice.

A read begins with the servers that the introducers announced last time. Nothing unverified is ever delivered, so an
outdated list costs only time: a read that fails, or has delivered nothing when the introducers announce other servers,
continues with all servers where it stopped.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from twisted.internet.defer import CancelledError, Deferred

from grid.caps import ChkVerifyCap, ImmutableFileCap, LitCap
from grid.errors import GridError
from grid.extents.files import open_immutable
from grid.immutable.read.get_plan import GetResult
from grid.node.client import Client
from grid.ports import Observer, Sink, StorageServer, ignore_events
from grid.runtime import Tasks
from grid.sinks import CountingSink

IMPATIENCE_S = 0.5
"""Seconds that a read may use remembered servers before the introducers are asked."""


async def read_file(
    client: Client,
    cap: ImmutableFileCap | ChkVerifyCap,
    sink: Sink,
    offset: int = 0,
    length: int | None = None,
    observer: Observer = ignore_events,
) -> GetResult:
    """ImmutableFile.read, with all servers that the client knows or can find; raises the same errors."""
    if isinstance(cap, LitCap):
        return await open_immutable(cap, client.grid_to_read([], observer)).read(sink, offset, length)
    remembered = client.remembered_servers()
    counting = CountingSink(sink)
    problem: GridError | None = None
    if remembered:
        try:
            file = open_immutable(cap, client.grid_to_read(remembered, observer))
            return await _unless_others_found(client, remembered, counting, file.read(counting, offset, length))
        except GridError as error:
            problem = error
        except _OthersFoundError:
            pass
    servers = await client.servers()
    if problem is not None and not _has_others(servers, remembered):
        raise problem
    left = None if length is None else length - counting.written
    file = open_immutable(cap, client.grid_to_read(servers, observer))
    result = await file.read(sink, offset + counting.written, left)
    return GetResult(
        size=result.size + counting.written, share_count=result.share_count, hedged_bytes=result.hedged_bytes
    )


class _OthersFoundError(Exception):
    """Other servers were found before any remembered one delivered anything."""


async def _unless_others_found(
    client: Client, remembered: list[StorageServer], sink: CountingSink, reading: Coroutine[Any, Any, GetResult]
) -> GetResult:
    task = Deferred.fromCoroutine(reading)
    others_found: list[bool] = []

    async def look_for_others() -> None:
        await client.runtime.clock.sleep(IMPATIENCE_S)
        if _has_others(await client.servers(), remembered) and not sink.written:
            others_found.append(True)
            task.cancel()

    # The introducers' errors do not matter while the read makes progress.
    tasks = Tasks()
    tasks.start(look_for_others())
    try:
        return await task
    except CancelledError:
        if others_found:
            raise _OthersFoundError from None
        raise
    finally:
        tasks.cancel()


def _has_others(servers: list[StorageServer], remembered: list[StorageServer]) -> bool:
    """Whether any server is new or has moved since it was remembered."""
    known = {id(server) for server in remembered}
    return any(id(server) not in known for server in servers)
