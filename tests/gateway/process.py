"""A gateway over servers in memory as a process of its own: what it holds and what it logs can be looked at from outside.

    python -m tests.gateway.process FOLDER [NAME]

prints the port that it listens on, logs to stderr, and ends when its stdin does. With a NAME it may be called that and any address, as one that listens to
others than this machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

from grid.gateway.shared.services import LOOPBACK_HOSTS, AllowedHosts
from grid.runtime import keep_freed_memory
from tests.gateway.rig import running_gateway


def main() -> None:
    """Run until stdin ends."""
    from twisted.internet import reactor, stdio
    from twisted.internet.defer import Deferred
    from twisted.internet.protocol import Protocol

    keep_freed_memory()
    from twisted.logger import globalLogBeginner, textFileLogObserver

    globalLogBeginner.beginLoggingTo([textFileLogObserver(sys.stderr)], redirectStandardIO=False)
    ended: Deferred[None] = Deferred()

    class Watch(Protocol):
        def connectionLost(self, reason: object = None) -> None:
            """The parent is done with us."""
            ended.callback(None)

    async def run() -> None:
        names = frozenset(sys.argv[2:])
        hosts = AllowedHosts(names, any_address=True) if names else LOOPBACK_HOSTS
        async with running_gateway(Path(sys.argv[1]), hosts=hosts) as rig:
            stdio.StandardIO(Watch())
            print(rig.port, flush=True)
            await ended
        reactor.stop()

    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(run()))
    reactor.run()


if __name__ == "__main__":
    main()
