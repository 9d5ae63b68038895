"""The library in a warm process: reads questions as lines of JSON on stdin, answers them one by one on stdout.

    python -m perf.systems.library CLIENT_DIRECTORY SERVERS

The first line that it prints says that it is connected to that many servers. It ends with its stdin.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from twisted.internet import reactor as global_reactor
from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from grid.caps import ChkCap, LitCap, parse_cap
from grid.cli.sources import FileSource
from grid.cli.targets import DescriptorSink
from grid.immutable.get import ImmutableFile
from grid.immutable.put import put
from grid.node.client import Client
from grid.node.directory import open_directory
from grid.node.readiness import wait_for_servers
from grid.ports import Buffer, Runtime, Sink
from grid.runtime import make_runtime

READY_S = 60.0


class TimedSink:
    """A sink that remembers when the first octets came."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.first: float | None = None

    async def write(self, data: Buffer) -> None:
        """Pass the octets on."""
        if self.first is None:
            self.first = time.perf_counter()
        await self._sink.write(data)


async def answer(client: Client, question: Mapping[str, Any]) -> list[Any]:
    """What a question asks for, item by item: the caps of puts, the seconds until the first octet of gets."""
    do = put_one if question["what"] == "put" else get_one
    items: list[list[Any]] = question["items"]
    results: list[Any] = [None] * len(items)
    waiting = iter(enumerate(items))

    async def work() -> None:
        for index, item in waiting:
            results[index] = await do(client, *item)

    if len(items) == 1:
        await work()
    else:
        workers = [Deferred.fromCoroutine(work()) for _ in range(question["concurrency"])]
        for succeeded, failure in await DeferredList(workers, consumeErrors=True):
            if not succeeded:
                cast(Failure, failure).raiseException()
    return results


async def put_one(client: Client, path: str) -> str:
    """The cap of the file, put."""
    with Path(path).open("rb") as file:
        result = await put(
            FileSource(file, client.runtime.cpu),
            encoding=client.encoding,
            convergence=client.directory.convergence_secret(),
            servers=await client.servers(),
            leases=client.leases,
            runtime=client.runtime,
        )
    return result.cap.to_string()


async def get_one(client: Client, text: str, path: str, offset: int, length: int | None) -> float:
    """Read the range, or the file, to the path; the seconds until its first octet was there."""
    started = time.perf_counter()
    cap = parse_cap(text)
    if not isinstance(cap, ChkCap | LitCap):
        raise ValueError("only the caps of immutable files")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        sink = TimedSink(DescriptorSink(descriptor, client.runtime.cpu))
        await ImmutableFile(cap, await client.servers(), client.runtime).read(sink, offset, length)
    finally:
        os.close(descriptor)
    return (sink.first or time.perf_counter()) - started


async def serve(directory: Path, servers: int, runtime: Runtime, reactor: Any) -> None:  # noqa: ANN401 - Twisted's
    """Answer questions until there are no more."""
    client = Client(open_directory(directory), runtime, reactor)
    try:
        await wait_for_servers(client, servers, READY_S, lambda: None)
        tell(results=[])
        while line := await read_line(reactor):
            try:
                tell(results=await answer(client, json.loads(line)))
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


def tell(**answer: str | list[Any]) -> None:
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
