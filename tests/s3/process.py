"""An S3 door over servers in memory as a process of its own.

    python -m tests.s3.process FOLDER

prints the port that it listens on, logs to stderr, and ends when its stdin does.
"""

from __future__ import annotations

import sys
from pathlib import Path

from grid.runtime import keep_freed_memory
from tests.s3.rig import running_door


def main() -> None:
    """Run until stdin ends."""
    from twisted.internet import reactor, stdio
    from twisted.internet.defer import Deferred
    from twisted.internet.protocol import Protocol

    keep_freed_memory()
    from twisted.logger import globalLogBeginner, textFileLogObserver

    globalLogBeginner.beginLoggingTo([textFileLogObserver(sys.stderr)], redirectStandardIO=False)
    ended: Deferred[None] = Deferred()

    class Parent(Protocol):
        def connectionLost(self, reason: object = None) -> None:
            """The parent is done with us."""
            ended.callback(None)

    async def run() -> None:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        async with running_door(Path(sys.argv[1])) as rig:
            stdio.StandardIO(Parent())
            print(rig.port, flush=True)
            await ended
        reactor.stop()

    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(run()))
    reactor.run()


if __name__ == "__main__":
    main()
