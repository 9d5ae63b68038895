"""A rig as a separate process: it prints its port, logs to stderr, and ends when its stdin closes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from grid.allocator import keep_freed_memory


class Listening(Protocol):
    """What listens."""

    port: int


def serve_until_stdin_ends(open_rig: Callable[[], AbstractAsyncContextManager[Listening]]) -> None:
    """Run the reactor with the rig until the parent closes the stdin of this process, or ends."""
    from twisted.internet import reactor, stdio
    from twisted.internet.defer import Deferred
    from twisted.internet.protocol import Protocol as TwistedProtocol

    keep_freed_memory()
    from twisted.logger import globalLogBeginner, textFileLogObserver

    globalLogBeginner.beginLoggingTo([textFileLogObserver(sys.stderr)], redirectStandardIO=False)
    ended: Deferred[None] = Deferred()

    class Parent(TwistedProtocol):
        def connectionLost(self, reason: object = None) -> None:
            """The parent is done with us."""
            ended.callback(None)

    async def run() -> None:
        async with open_rig() as rig:
            stdio.StandardIO(Parent())
            print(rig.port, flush=True)
            await ended
        reactor.stop()

    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(run()))
    reactor.run()
