"""The library in a warm process: takes requests as lines of JSON on stdin, and answers each on stdout.

python -m perf.systems.library CLIENT_DIRECTORY SERVERS CODEC [OPTION...]

The options are those of perf.systems.engine_options. The first output line says that it is connected to SERVERS
servers. It ends with its stdin.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from attrs import define
from twisted.internet import reactor as global_reactor
from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from grid.codec.erasure import codec_name, use_zfec
from grid.node.client import Client
from grid.node.directory import open_directory
from grid.node.readiness import wait_for_servers
from grid.ports import Runtime
from grid.runtime import make_runtime
from perf.sampling.timeline import EventLog
from perf.systems.engine_options import apply_options
from perf.systems.questions import add_children, get_one, list_children, make_directory, overwrite, put_one

READY_S = 60.0

ANSWERS: Mapping[str, Callable[..., Awaitable[Any]]] = {
    "put": put_one,
    "get": get_one,
    "overwrite": overwrite,
    "mkdir": make_directory,
    "add": add_children,
    "list": list_children,
}
"""The supported requests; each takes the client, an observer, and the parts of one item."""


@define
class Server:
    """Answers requests, and keeps the events of the last one until they are requested; of those that run beside each other, of the
    slowest since the last `forget`.
    """

    client: Client
    log: EventLog
    _longest_s: float = 0.0

    async def answer(self, question: Mapping[str, Any]) -> list[Any]:
        """The results of a request, item by item."""
        if question["what"] == "trace":
            return [self.log.requests, self.log.to_json()]
        if question["what"] == "forget":
            self.log, self._longest_s = EventLog(), 0.0
            return []
        do, log, started = ANSWERS[question["what"]], EventLog(), time.perf_counter()
        if "number" not in question:
            self.log = log

        async def one(item: Sequence[Any]) -> object:
            return await do(self.client, log, *item)

        results = await answer_all(one, question["items"], question["concurrency"])
        seconds = time.perf_counter() - started
        if "number" in question and seconds > self._longest_s:
            self.log, self._longest_s = log, seconds
        return results


async def answer_all(
    one: Callable[[Sequence[Any]], Awaitable[Any]], items: list[list[Any]], concurrency: int
) -> list[Any]:
    """The results of all items in order, computed `concurrency` at a time."""
    results: list[Any] = [None] * len(items)
    waiting = iter(enumerate(items))

    async def work() -> None:
        for index, item in waiting:
            results[index] = await one(item)

    if concurrency == 1:
        await work()
    else:
        workers = [Deferred.fromCoroutine(work()) for _ in range(concurrency)]
        for succeeded, failure in await DeferredList(workers, consumeErrors=True):
            if not succeeded:
                cast(Failure, failure).raiseException()
    return results


async def serve(directory: Path, servers: int, runtime: Runtime, reactor: Any) -> None:  # noqa: ANN401 - Twisted's
    """Answer requests until the input ends."""
    client = Client(open_directory(directory), runtime, reactor)
    try:
        await wait_for_servers(client, servers, READY_S, lambda: None)
        server = Server(client, EventLog())
        tell(results=[codec_name()])
        while line := await read_line(reactor):
            question = json.loads(line)
            if "number" in question:
                Deferred.fromCoroutine(answer_beside(server, question))
            else:
                await answer_beside(server, question)
    finally:
        await client.close()


async def answer_beside(server: Server, question: Mapping[str, Any]) -> None:
    """Answer a request; a numbered one runs beside others, and its answer has the number."""
    number = {"number": question["number"]} if "number" in question else {}
    try:
        tell(results=await server.answer(question), **number)
    except Exception as error:  # noqa: BLE001 - whatever went wrong is the answer
        tell(error=f"{type(error).__name__}: {error}", **number)


def read_line(reactor: Any) -> Deferred[bytes]:  # noqa: ANN401 - Twisted's
    """The next line of stdin, read on a separate thread; empty at its end."""
    line: Deferred[bytes] = Deferred()

    def wait() -> None:
        reactor.callFromThread(line.callback, sys.stdin.buffer.readline())

    reactor.callInThread(wait)
    return line


def tell(**answer: str | int | list[Any]) -> None:
    """Write one line to stdout and flush it."""
    print(json.dumps(answer), flush=True)


def main() -> None:
    """Serve until the input ends."""
    reactor = cast(Any, global_reactor)
    directory, servers = Path(sys.argv[1]), int(sys.argv[2])
    if sys.argv[3] == "zfec":
        use_zfec()
    apply_options(sys.argv[4:])

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
