"""Reads an object while the directories on its path are asked whether they still lead to it.

Nothing reaches the client before they have said so; a read of anything else is given up. An immutable file never changes, so
the client gets what a read that began later would have sent.

Cost: an answer whose path is remembered begins one round trip sooner. If the path leads elsewhere now, the first bytes of
the former object were read in vain: at most as many as `OpenFiles.read` fetches at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from twisted.internet.defer import Deferred

from grid.caps import KnownCap
from grid.ports import Buffer, Sink
from grid.runtime import Begun, Tasks

Read = Callable[[KnownCap, Sink, int, int], Awaitable[None]]
"""(file, sink, first byte, byte count) -> writes these bytes to the sink."""


class _Gate:
    """A sink that takes nothing until it is known where the bytes go."""

    def __init__(self) -> None:
        self._sink: Sink | None = None
        self._opened: Deferred[None] = Deferred()

    def open(self, sink: Sink) -> None:
        """Pass everything on to this sink from now on."""
        self._sink = sink
        self._opened.callback(None)

    async def write(self, data: Buffer) -> None:
        """Pass the bytes on, once the gate is open."""
        if self._sink is None:
            await self._opened
        assert self._sink is not None
        await self._sink.write(data)


class EarlyRead:
    """Bytes of a file, on their way here. The tasks' owner ends the read if nobody wants it."""

    def __init__(self, read: Read, target: KnownCap, start: int, length: int, tasks: Tasks) -> None:
        """Begin. read: how."""
        self._what = target, start, length
        self._gate = _Gate()
        self._reading = Begun(self._run(read), tasks)

    async def _run(self, read: Read) -> None:
        target, start, length = self._what
        await read(target, self._gate, start, length)

    def is_of(self, target: KnownCap, start: int, length: int) -> bool:
        """Whether it reads these bytes of this file."""
        return self._what == (target, start, length)

    async def pass_on(self, sink: Sink) -> None:
        """Write the bytes to the sink; raises the errors of the read. Call it once."""
        self._gate.open(sink)
        await self._reading.result()

    def cancel(self) -> None:
        """Give up the read."""
        self._reading.cancel()
