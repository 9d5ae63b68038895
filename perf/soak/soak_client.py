"""The client of a soak: the library over two transports, and a gateway over HTTP; it generates and checks every byte.

python -m perf.soak.soak_client SERVERS GATEWAY_URL CLIENT_DIRECTORY...

A request is one line of JSON, a list of operations to carry out in parallel; the answer is a list with one object for
each. The first output line says to how many servers every client is connected. Files contain a key's keystream, so any
range of any file can be verified without a copy.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from attrs import evolve
from twisted.internet import reactor as global_reactor
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.threads import deferToThread

from grid.allocator import return_freed_memory
from grid.caps import ChkCap, LitCap, parse_cap
from grid.engine.grid import Encoding, Remembered
from grid.immutable.get import ImmutableFile
from grid.immutable.put import put
from grid.node.client import Client
from grid.node.directory import open_directory
from grid.node.readiness import wait_for_servers
from grid.ports import Buffer, Runtime
from grid.runtime import make_runtime
from perf.soak.soak_mutable import MutableWork
from perf.soak.soak_web import WebWork, contents

READY_S = 60.0

OPEN_FILES = 8
"""Files kept open between reads, per client."""


class KeystreamSource:
    """A put's source."""

    def __init__(self, key: bytes, size: int) -> None:
        self.size = size
        self._key = key

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Return these bytes."""
        return contents(self._key, offset, length)


class ComparingSink:
    """A get's sink. wrong: the offset of the first piece that differs from the file."""

    def __init__(self, key: bytes, offset: int) -> None:
        self.wrong: int | None = None
        self.end = offset
        self._key = key

    async def write(self, data: Buffer) -> None:
        """Compare the bytes."""
        if self.wrong is None and data != contents(self._key, self.end, len(data)):
            self.wrong = self.end
        self.end += len(data)


class SoakClient:
    """The clients of the node directories, and their open files."""

    def __init__(self, directories: Sequence[Path], gateway: str, runtime: Runtime, reactor: Any) -> None:  # noqa: ANN401 - Twisted's
        self.clients = [Client(open_directory(directory), runtime, reactor) for directory in directories]
        remembered = Remembered()
        for client in self.clients:
            client.remembered = remembered
        self._reactor = reactor
        self._open: OrderedDict[tuple[int, str], ImmutableFile] = OrderedDict()
        self._mutable = MutableWork(self.clients)
        self._web = WebWork(gateway)

    async def do(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out one operation; an error is a result too."""
        started = time.perf_counter()
        answer: dict[str, Any]
        try:
            match operation["op"]:
                case "put":
                    answer = await self._put(operation)
                case "read":
                    answer = await self._read(operation)
                case "web-put" | "web-read":
                    answer = await self._web.do(operation)
                case "holdings":
                    answer = self._holdings()
                case _:
                    answer = await self._mutable.do(operation)
        except Exception as error:  # noqa: BLE001 - whatever went wrong is the answer
            answer = {"error": f"{type(error).__name__}: {error}"[:2000]}
        return {**answer, "seconds": round(time.perf_counter() - started, 3)}

    async def _put(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        client = self.clients[operation["client"]]
        k, n, happy = operation["encoding"]
        encoding = Encoding(k=k, n=n, happy=happy, max_segment_size=operation["segment"])
        grid = evolve(client.grid(await client.servers()), encoding=encoding)
        if not operation["convergent"]:
            grid = evolve(grid, convergence=None)
        result = await put(KeystreamSource(bytes.fromhex(operation["key"]), operation["size"]), grid)
        return {"cap": result.cap.to_string()}

    async def _read(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        offset, length = operation["offset"], operation["length"]
        file = await self._file(operation["client"], operation["cap"], keep=operation["keep"])
        sink = ComparingSink(bytes.fromhex(operation["key"]), offset)
        await file.read(sink, offset, length)
        if sink.wrong is not None:
            return {"wrong": f"the bytes from {sink.wrong} on are not those of the file"}
        if sink.end != offset + length:
            return {"wrong": f"{sink.end - offset} bytes came, not {length}"}
        return {}

    async def _file(self, index: int, text: str, *, keep: bool) -> ImmutableFile:
        cached = self._open.pop((index, text), None)
        if cached is None or not keep:
            cap = parse_cap(text)
            assert isinstance(cap, ChkCap | LitCap)
            client = self.clients[index]
            cached = ImmutableFile(cap, client.grid(await client.servers()))
        self._open[index, text] = cached
        while len(self._open) > OPEN_FILES:
            self._open.popitem(last=False)
        return cached

    def _holdings(self) -> dict[str, Any]:
        """How many objects are alive, and how many calls are due. What is garbage or free counts as held by nobody."""
        gc.collect()
        return_freed_memory()
        return {"objects": len(gc.get_objects()), "timers": len(self._reactor.getDelayedCalls())}

    async def close(self) -> None:
        """Close all connections."""
        for client in self.clients:
            await client.close()


async def serve(directories: Sequence[Path], servers: int, gateway: str, reactor: Any) -> None:  # noqa: ANN401
    """Answer requests until the input ends."""
    soaked = SoakClient(directories, gateway, make_runtime(reactor), reactor)
    try:
        for client in soaked.clients:
            await wait_for_servers(client, servers, READY_S, lambda: None)
        tell([])
        while line := await deferToThread(sys.stdin.buffer.readline):
            tasks = [Deferred.fromCoroutine(soaked.do(operation)) for operation in json.loads(line)]
            answers: list[dict[str, Any]] = await gatherResults(tasks)
            tell(answers)
    finally:
        await soaked.close()


def tell(answer: Sequence[Mapping[str, Any]]) -> None:
    """Write one line to stdout and flush it."""
    print(json.dumps(list(answer)), flush=True)


def main() -> None:
    """Serve until the input ends; an error ends the process with a message on stderr."""
    reactor = cast(Any, global_reactor)
    servers, gateway, *directories = sys.argv[1:]

    def ended(outcome: object) -> None:
        if outcome is not None:
            print(outcome, file=sys.stderr, flush=True)
        reactor.stop()

    def start() -> None:
        paths = [Path(directory) for directory in directories]
        Deferred.fromCoroutine(serve(paths, int(servers), gateway, reactor)).addBoth(ended)

    reactor.callWhenRunning(start)
    reactor.run()


if __name__ == "__main__":
    main()
