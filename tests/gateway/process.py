"""A gateway over servers in memory as a process of its own: what it holds and what it logs can be looked at from outside.

    python -m tests.gateway.process FOLDER

prints the port that it listens on, logs to stderr, and ends when its stdin does.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.gateway.rig import running_gateway


def main() -> None:
    """Run until stdin ends."""
    from twisted.internet import reactor, stdio
    from twisted.internet.defer import Deferred
    from twisted.internet.protocol import Protocol
    from twisted.logger import globalLogBeginner, textFileLogObserver

    globalLogBeginner.beginLoggingTo([textFileLogObserver(sys.stderr)], redirectStandardIO=False)
    ended: Deferred[None] = Deferred()

    class Watch(Protocol):
        def connectionLost(self, reason: object = None) -> None:
            """The parent is done with us."""
            ended.callback(None)

    async def run() -> None:
        async with running_gateway(Path(sys.argv[1])) as rig:
            stdio.StandardIO(Watch())
            print(rig.port, flush=True)
            await ended
        reactor.stop()

    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(run()))
    reactor.run()


if __name__ == "__main__":
    main()
