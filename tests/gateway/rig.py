"""A gateway in this process on a real socket, over an in-memory grid; and requests to it, byte by byte."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ServerEndpoint, connectProtocol
from twisted.internet.protocol import Protocol

from grid.directory.file_store import FileStore
from grid.engine.grid import Encoding
from grid.gateway.http.routing import Handler
from grid.gateway.http.server import GatewayFactory
from grid.gateway.shared.node_view import ServerView
from grid.gateway.shared.services import LOOPBACK_HOSTS, GatewaySettings
from grid.gateway.shared.spool import SpoolFolder
from grid.gateway.site import Gateway, make_routes
from grid.placement.leases import LeaseMaster
from grid.ports import ServerId, ServerIdentity
from grid.runtime import ReactorClock, RealRuntime, SystemEntropy, ThreadCpuPool
from grid.storage.calls.service import StorageService
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import StorageSettings
from grid.wire.connections.connection_limit import ConnectionLimit
from tests.support.conformance import require_documented
from tests.support.grids import grid_of

TOKEN = b"a token that is not guessed"


@define
class Nobody:
    """A client view with these servers."""

    views: Sequence[ServerView] = ()

    def servers(self) -> Sequence[ServerView]:
        """The servers."""
        return self.views

    def introducers(self) -> Sequence[str]:
        """No introducer."""
        return ()


@define
class Reply:
    """An answer. headers: names in lower case; body: without its transfer encoding. is_whole: as long as it said."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_whole: bool = True


class Wire(Protocol):
    """A connection that keeps the bytes received."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.is_closed = False
        self._waiters: list[Deferred[None]] = []

    def dataReceived(self, data: bytes) -> None:
        """Keep it."""
        self.received += data
        self._wake()

    def connectionLost(self, reason: Any = None) -> None:
        """Remember that."""
        self.is_closed = True
        self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.callback(None)

    async def more(self) -> None:
        """Wait until something happens."""
        if not self.is_closed:
            waiter: Deferred[None] = Deferred()
            self._waiters.append(waiter)
            await waiter

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self.transport.write(data)  # type: ignore[union-attr]

    async def reply(self, *, head: bool = False) -> Reply:
        """The next answer on the connection."""
        while b"\r\n\r\n" not in self.received:
            if self.is_closed:
                raise ConnectionError(f"closed after {self.received!r}")
            await self.more()
        end = self.received.index(b"\r\n\r\n")
        raw = bytes(self.received[:end])
        del self.received[: end + 4]
        lines = raw.decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        if status == 100:
            return await self.reply(head=head)
        if head or status in (204, 304):
            return Reply(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            body, whole = await self._chunked()
        else:
            body, whole = await self._sized(int(headers.get("content-length", "0")))
        return Reply(status, headers, body, whole)

    async def _sized(self, size: int) -> tuple[bytes, bool]:
        while len(self.received) < size and not self.is_closed:
            await self.more()
        body = bytes(self.received[:size])
        del self.received[:size]
        return body, len(body) == size

    async def _chunked(self) -> tuple[bytes, bool]:
        body = bytearray()
        while True:
            found = re.match(rb"([0-9a-fA-F]+)\r\n", bytes(self.received[:20]))
            if found:
                size = int(found[1], 16)
                if len(self.received) >= found.end() + size + 2:
                    body += self.received[found.end() : found.end() + size]
                    consumed = found.end() + size + 2
                    del found
                    del self.received[:consumed]
                    if size == 0:
                        return bytes(body), True
                    continue
            if self.is_closed:
                return bytes(body), False
            await self.more()


@define
class Rig:
    """A gateway that listens."""

    gateway: Gateway
    factory: GatewayFactory
    port: int
    servers: Sequence[Any] = ()
    wires: list[Wire] = field(factory=list)

    @property
    def host(self) -> str:
        """As the Host header has it."""
        return f"127.0.0.1:{self.port}"

    async def connect(self) -> Wire:
        """A connection."""
        from twisted.internet import reactor
        from twisted.internet.endpoints import TCP4ClientEndpoint

        wire: Wire = await connectProtocol(TCP4ClientEndpoint(reactor, "127.0.0.1", self.port), Wire())
        self.wires.append(wire)
        return wire

    async def ask(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Reply:
        """One request on a connection of its own."""
        wire = await self.connect()
        fields = {"Host": self.host, "Connection": "close"}
        if body or method in ("PUT", "POST"):
            fields["Content-Length"] = str(len(body))
        fields |= headers or {}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        wire.send("\r\n".join(lines).encode("utf-8") + body)
        reply = await wire.reply(head=method == "HEAD")
        wire.transport.loseConnection()  # type: ignore[union-attr]
        require_documented(method, path, reply.status, reply.headers, reply.body)
        return reply


@asynccontextmanager
async def running_gateway(
    tmp_path: Path,
    handlers: dict[str, Handler] | None = None,
    *,
    server_count: int = 5,
    disk_bytes: int = 2**28,
    encoding: Encoding | None = None,
    convergence: bytes | None = b"convergence",
    views: Sequence[ServerView] = (),
    **settings: Any,
) -> AsyncIterator[Rig]:
    """A gateway with its own handlers and additional ones, over in-memory servers. views: servers that its pages show."""
    from twisted.internet import reactor

    pool = ThreadCpuPool(reactor, 2)
    runtime = RealRuntime(clock=ReactorClock(reactor), cpu=pool, entropy=SystemEntropy())
    servers = []
    for index in range(server_count):
        seed = b"%02d" % index * 10
        identity = ServerIdentity(server_id=ServerId(f"s{index}"), permutation_seed=seed, lease_seed=seed)
        servers.append(StorageService(identity, MemoryDisk(disk_bytes), runtime, StorageSettings()))
        await servers[-1].start()
    encoding = encoding or Encoding(k=2, n=4, happy=2, max_segment_size=2**17)
    leases = LeaseMaster(bytes(32))
    store = FileStore(grid=grid_of(servers, runtime, leases=leases, encoding=encoding, convergence=convergence))
    gateway = Gateway(
        store=store,
        client=Nobody(views),
        settings=evolve(
            GatewaySettings(
                spools=SpoolFolder(tmp_path),
                static_directory=tmp_path / "public_html",
                api_token=TOKEN,
                hosts=LOOPBACK_HOSTS,
            ),
            **settings,
        ),
    )
    routes = make_routes(gateway)
    routes.add(handlers or {})
    factory = GatewayFactory(gateway, routes, reactor, ConnectionLimit())
    port = await TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(factory)
    address: Any = port.getHost()
    rig = Rig(gateway, factory, address.port, servers)
    try:
        yield rig
    finally:
        await port.stopListening()
        for wire in rig.wires:
            wire.transport.abortConnection()  # type: ignore[union-attr]
        await factory.drain(0.5)
        while not all(wire.is_closed for wire in rig.wires):
            for wire in rig.wires:
                if not wire.is_closed:
                    await wire.more()
        for server in servers:
            await server.stop()
        pool.stop()
