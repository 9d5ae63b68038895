"""The real Tahoe-LAFS 1.20: storage nodes, an introducer, and a client node with its web gateway."""

from __future__ import annotations

import http.client
import time
import urllib.parse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attrs import frozen

from perf.systems.processes import CommandLine, Fetch, ProcessSystem, WarmClient
from tests.support.clients import TahoeClient
from tests.support.node_directory import Kind, tahoe_executable
from tests.support.tahoe_grid import ClientSettings, ProcessGrid

ANSWER_S = 300.0
PIECE = 1 << 20


@frozen
class TahoeGateway:
    """The warm client: the gateway's HTTP interface, which is the only library that 1.20 offers.

    The harness's own part, moving the file between disk and loopback, is in the wall time and not in the client's
    processor seconds.
    """

    client: TahoeClient

    @property
    def pids(self) -> Sequence[int]:
        """The client node."""
        return [self.client.node.pid]

    def put(self, sources: Sequence[Path], concurrency: int) -> list[str]:
        """`PUT /uri` with each file as a body."""
        if len(sources) == 1:
            return [self.client.put(sources[0])]
        with ThreadPoolExecutor(concurrency) as pool:
            return list(pool.map(self.client.put, sources))

    def get(self, fetches: Sequence[Fetch], concurrency: int) -> list[float]:
        """`GET /uri/CAP`, with a Range if asked for, the body written to the file."""
        url = self.client.url
        if len(fetches) == 1:
            return [fetch_by_http(url, fetches[0])]
        with ThreadPoolExecutor(concurrency) as pool:
            return list(pool.map(lambda fetch: fetch_by_http(url, fetch), fetches))


@frozen
class TahoeCommands:
    """`tahoe put` and `tahoe get`, through the gateway that runs already, as 1.20 needs it."""

    client: TahoeClient

    @property
    def pids(self) -> Sequence[int]:
        """The client node behind the commands."""
        return [self.client.node.pid]

    def put(self, source: Path) -> list[str]:
        """`tahoe put FILE`."""
        return [tahoe_executable(), "-d", str(self.client.directory), "put", str(source)]

    def get(self, cap: str, target: Path) -> list[str]:
        """`tahoe get CAP FILE`."""
        return [tahoe_executable(), "-d", str(self.client.directory), "get", cap, str(target)]


class TahoeSystem(ProcessSystem):
    """Storage nodes of Tahoe-LAFS 1.20."""

    kind: Kind = "tahoe"

    def start_clients(self, grid: ProcessGrid, settings: ClientSettings) -> tuple[WarmClient, CommandLine]:
        """One client node serves both."""
        client = grid.add_client(settings)
        assert isinstance(client, TahoeClient)
        return TahoeGateway(client), TahoeCommands(client)


def fetch_by_http(url: str, fetch: Fetch) -> float:
    """Download from the gateway at that URL to the file; the seconds until the first octet of the body was there.

    RuntimeError if the answer is another than the one asked for.
    """
    base = urllib.parse.urlsplit(url)
    assert base.hostname is not None
    headers, status = {}, 200
    if fetch.length is not None:
        headers, status = {"Range": f"bytes={fetch.offset}-{fetch.offset + fetch.length - 1}"}, 206
    started = time.perf_counter()
    connection = http.client.HTTPConnection(base.hostname, base.port, timeout=ANSWER_S, blocksize=PIECE)
    try:
        connection.request("GET", f"/uri/{urllib.parse.quote(fetch.cap, safe='')}", headers=headers)
        answer = connection.getresponse()
        if answer.status != status:
            raise RuntimeError(f"the gateway answered {answer.status}: {answer.read()[:2000]!r}")
        missing = int(answer.headers["Content-Length"])
        piece = answer.read1(PIECE)
        first = time.perf_counter() - started
        with fetch.target.open("wb") as target:
            while piece:
                target.write(piece)
                missing -= len(piece)
                piece = answer.read(PIECE)
    finally:
        connection.close()
    if missing:
        raise RuntimeError(f"the gateway's answer is {missing} octets short")
    return first
