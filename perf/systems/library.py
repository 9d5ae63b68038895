"""The library in a warm process: reads questions as lines of JSON on stdin, answers them one by one on stdout.

    python -m perf.systems.library CLIENT_DIRECTORY SERVERS

The first line that it prints says that it is connected to that many servers. It ends with its stdin.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from twisted.internet import reactor as global_reactor
from twisted.internet.defer import Deferred

from grid.caps import ChkCap, LitCap, parse_cap
from grid.cli.sources import FileSource
from grid.cli.targets import DescriptorSink
from grid.immutable.get import ImmutableFile
from grid.immutable.put import put
from grid.node.client import Client
from grid.node.directory import open_directory
from grid.node.readiness import wait_for_servers
from grid.ports import Runtime
from grid.runtime import make_runtime

READY_S = 60.0


async def answer(client: Client, question: Mapping[str, str]) -> str:
    """What a question asks for: the cap of a put, nothing of a get."""
    if question["what"] == "put":
        with Path(question["path"]).open("rb") as file:
            result = await put(
                FileSource(file, client.runtime.cpu),
                encoding=client.encoding,
                convergence=client.directory.convergence_secret(),
                servers=await client.servers(),
                leases=client.leases,
                runtime=client.runtime,
            )
        return result.cap.to_string()
    cap = parse_cap(question["cap"])
    if not isinstance(cap, ChkCap | LitCap):
        raise ValueError("only the caps of immutable files")
    descriptor = os.open(question["path"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        opened = ImmutableFile(cap, await client.servers(), client.runtime)
        await opened.read(DescriptorSink(descriptor, client.runtime.cpu))
    finally:
        os.close(descriptor)
    return ""


async def serve(directory: Path, servers: int, runtime: Runtime, reactor: Any) -> None:  # noqa: ANN401 - Twisted's
    """Answer questions until there are no more."""
    client = Client(open_directory(directory), runtime, reactor)
    try:
        await wait_for_servers(client, servers, READY_S, lambda: None)
        tell(result="ready")
        while line := await read_line(reactor):
            try:
                tell(result=await answer(client, json.loads(line)))
            except Exception as error:  # noqa: BLE001 - whatever went wrong is the answer
                tell(error=f"{type(error).__name__}: {error}")
    finally:
        await client.close()


def read_line(reactor: Any) -> Deferred[bytes]:  # noqa: ANN401 - Twisted's
    """The next line of stdin, read on a thread of its own; empty at its end."""
    line: Deferred[bytes] = Deferred()

    def wait() -> None:
        reactor.callFromThread(line.callback, sys.stdin.buffer.readline())

    reactor.callInThread(wait)
    return line


def tell(**answer: str) -> None:
    """One line on stdout, at once."""
    print(json.dumps(answer), flush=True)


def main() -> None:
    """Serve, then end."""
    reactor = cast(Any, global_reactor)
    directory, servers = Path(sys.argv[1]), int(sys.argv[2])

    def ended(outcome: object) -> None:
        if outcome is not None:
            tell(error=str(outcome))
        reactor.stop()

    def start() -> None:
        Deferred.fromCoroutine(serve(directory, servers, make_runtime(reactor), reactor)).addBoth(ended)

    reactor.callWhenRunning(start)
    reactor.run()


if __name__ == "__main__":
    main()
