"""An SFTP door over in-memory servers, and a gateway on the same grid, as a separate process.

    python -m tests.sftp.process FOLDER

makes keys in the folder, prints where both listen and the directories of the accounts as JSON, logs to stderr, and ends when its stdin does.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from twisted.conch.ssh.keys import Key
from twisted.internet.endpoints import TCP4ServerEndpoint

from grid.allocator import keep_freed_memory
from grid.sftp.accounts import parse_accounts
from grid.sftp.door import Door
from grid.sftp.server import SftpFactory
from grid.wire.connections.connection_limit import ConnectionLimit
from perf.processes.open_doors import make_key
from tests.gateway.rig import running_gateway

SLOW_ACCOUNTS = ("slow1", "slow2")
ACCOUNTS = ("alice", "reader", "bob", *SLOW_ACCOUNTS)


def main() -> None:
    """Run until stdin ends."""
    from twisted.internet import reactor, stdio
    from twisted.internet.defer import Deferred
    from twisted.internet.protocol import Protocol
    from twisted.logger import globalLogBeginner, textFileLogObserver

    keep_freed_memory()
    globalLogBeginner.beginLoggingTo([textFileLogObserver(sys.stderr)], redirectStandardIO=False)
    ended: Deferred[None] = Deferred()

    class Parent(Protocol):
        def connectionLost(self, reason: object = None) -> None:
            """The parent is done with us."""
            ended.callback(None)

    async def run() -> None:
        folder = Path(sys.argv[1])
        spools = folder / "spools"
        spools.mkdir(parents=True)
        async with running_gateway(spools) as rig:
            store = rig.gateway.store
            home, other = await store.create_directory(), await store.create_directory()
            roots = {"alice": home, "reader": home.read_cap(), "bob": other}
            for name in SLOW_ACCOUNTS:
                roots[name] = await store.create_directory()
            lines = [f"{name} {make_key(folder / name)} a comment {roots[name].to_string()}\n" for name in ACCOUNTS]
            accounts = parse_accounts("# accounts\n\n" + "".join(lines), "accounts", sys.exit)
            make_key(folder / "host")
            door = Door(rig.gateway, lambda name, key: accounts.get((name, key)))
            factory = SftpFactory(door, [Key.fromFile(str(folder / "host"))], reactor, ConnectionLimit())
            listening = await TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(factory)
            stdio.StandardIO(Parent())
            shown = {name: root.to_string() for name, root in roots.items()}
            found = {"pid": os.getpid(), "port": listening.getHost().port, "web": rig.port, "roots": shown}
            print(json.dumps(found), flush=True)
            await ended
            await listening.stopListening()
            await factory.drain(0.5)
            door.close()
        reactor.stop()

    def failed(reason: object) -> None:
        print(reason, file=sys.stderr, flush=True)
        reactor.stop()

    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(run()).addErrback(failed))
    reactor.run()


if __name__ == "__main__":
    main()
