"""A web gateway on a real socket over storage services in memory, and a plain client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from http.client import HTTPResponse
from io import BytesIO
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP4ServerEndpoint, connectProtocol
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from grid.directory.file_store import FileStore
from grid.engine.grid import Encoding
from grid.gateway.http.routing import Handler, Routes
from grid.gateway.http.server import GatewayFactory
from grid.gateway.shared.node_view import ServerView
from grid.gateway.shared.services import GatewaySettings
from grid.gateway.shared.spool import SpoolFolder
from grid.gateway.site import Gateway, make_routes
from grid.placement.leases import LeaseMaster
from grid.ports import ServerId, ServerIdentity, StorageServer
from grid.runtime import ReactorClock, RealRuntime, SystemEntropy, ThreadCpuPool
from grid.storage.calls.service import StorageService
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import StorageSettings
from grid.wire.connections.connection_limit import ConnectionLimit
from tests.support.conformance import require_documented
from tests.support.grids import grid_of

TOKEN = b"token of this start of the node"


@cache
def _threads() -> ThreadCpuPool:
    """Threads that all tests of this process share."""
    pool = ThreadCpuPool(reactor, 2)
    reactor.addSystemEventTrigger("before", "shutdown", pool.stop)
    return pool


@frozen(kw_only=True)
class Reply:
    """An answer. headers: by names in lower case. is_short: whether the connection ended before all of it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_short: bool = False

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8")


class _NoClient:
    """Nothing is known of a node: there is none."""

    def servers(self) -> Sequence[ServerView]:
        return []

    def introducers(self) -> Sequence[str]:
        return []


@define(eq=False)
class WebGateway:
    """A gateway that listens, and the servers behind it."""

    gateway: Gateway
    factory: GatewayFactory
    services: list[StorageService]
    disks: list[MemoryDisk]
    port: int = 0
    open: list[Connection] = field(factory=list)

    async def request(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Ask, on a connection of its own, and wait for the whole answer."""
        connection = await self.connect()
        try:
            connection.send(self.head(method, target, len(body), headers) + body)
            reply = await connection.reply(method)
            if not reply.is_short:
                require_documented(method, target, reply.status, reply.headers, reply.body)
            return reply
        finally:
            await connection.close()

    async def get(self, target: str, **headers: str) -> Reply:
        """A GET; underscores in names of headers are hyphens."""
        return await self.request("GET", target, headers={k.replace("_", "-"): v for k, v in headers.items()})

    async def put(self, target: str, body: bytes = b"", **headers: str) -> Reply:
        """A PUT."""
        return await self.request("PUT", target, body, {k.replace("_", "-"): v for k, v in headers.items()})

    async def post_form(self, target: str, fields: Mapping[str, str | tuple[str | None, bytes]]) -> Reply:
        """A POST of a form; a value that is a pair is a file's name and its contents."""
        kind, body = form(fields)
        return await self.request("POST", target, body, {"Content-Type": kind})

    def head(self, method: str, target: str, size: int | None, headers: Mapping[str, str] | None = None) -> bytes:
        """The head of a request. size: None for a chunked body."""
        length = {"Transfer-Encoding": "chunked"} if size is None else {"Content-Length": str(size)}
        every = {"Host": f"127.0.0.1:{self.port}", "Connection": "close", **length, **(headers or {})}
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in every.items()), "", ""]
        return "\r\n".join(lines).encode("utf-8")

    async def connect(self) -> Connection:
        """A connection on which nothing was said yet."""
        endpoint = TCP4ClientEndpoint(reactor, "127.0.0.1", self.port)
        connection: Connection = await connectProtocol(endpoint, Connection())
        self.open.append(connection)
        return connection


class Connection(Protocol):
    """Reads until the other end closes, or until it is stopped."""

    transport: Any

    def __init__(self) -> None:
        self.received = bytearray()
        self._ended: Deferred[None] = Deferred()
        self._waiting: list[tuple[int, Deferred[None]]] = []
        self.is_over = False

    def dataReceived(self, data: bytes) -> None:
        """More came."""
        self.received += data
        for size, waiting in self._waiting[:]:
            if len(self.received) >= size:
                self._waiting.remove((size, waiting))
                waiting.callback(None)

    def connectionLost(self, reason: Failure = Failure(Exception())) -> None:  # noqa: B008
        """The other end closed."""
        self.is_over = True
        if not self._ended.called:
            self._ended.callback(None)

    def send(self, data: bytes) -> None:
        """Say something."""
        self.transport.write(data)

    async def at_least(self, size: int) -> None:
        """Return when that many bytes came."""
        if len(self.received) < size:
            waiting: Deferred[None] = Deferred()
            self._waiting.append((size, waiting))
            await waiting

    async def ended(self) -> None:
        """Return when the other end closed."""
        if not self.is_over:
            await self._ended

    async def reply(self, method: str = "GET") -> Reply:
        """The whole answer, once the other end closed."""
        await self.ended()
        return parse_reply(bytes(self.received), method)

    async def close(self) -> None:
        """Be done with it, however far it is."""
        if not self.is_over:
            self.transport.abortConnection()
            await self.ended()


def parse_reply(raw: bytes, method: str = "GET") -> Reply:
    """An answer with nothing behind it."""
    response = HTTPResponse(_Bytes(raw), method=method)  # type: ignore[arg-type]
    response.begin()
    body = b""
    is_short = False
    try:
        body = response.read()
    except Exception as error:
        body, is_short = getattr(error, "partial", b""), True
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Reply(status=response.status, headers=headers, body=body, is_short=is_short)


class _Bytes:
    def __init__(self, raw: bytes) -> None:
        self._bytes = raw

    def makefile(self, mode: str) -> BytesIO:
        """What http.client reads from."""
        return BytesIO(self._bytes)


def form(fields: Mapping[str, str | tuple[str | None, bytes]]) -> tuple[str, bytes]:
    """The type and the bytes of a multipart form."""
    boundary = "----a-boundary-of-forms"
    parts = []
    for name, value in fields.items():
        given, raw = value if isinstance(value, tuple) else (None, value.encode("utf-8"))
        file_name = f'; filename="{given}"' if given is not None else ""
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{file_name}\r\n\r\n'
        parts.append(head.encode("utf-8") + raw + b"\r\n")
    return f"multipart/form-data; boundary={boundary}", b"".join(parts) + f"--{boundary}--\r\n".encode()


@asynccontextmanager
async def web_gateway(
    folder: Path,
    *,
    count: int = 3,
    encoding: Encoding | None = None,
    handlers: Mapping[str, Handler] | None = None,
    servers: Sequence[StorageServer] | None = None,
    convergence: bytes | None = b"convergence",
) -> AsyncIterator[WebGateway]:
    """A gateway over that many in-memory servers, or over these. folder: for its spool. handlers: replace its own."""
    clock = ReactorClock(reactor)
    runtime = RealRuntime(clock=clock, cpu=_threads(), entropy=SystemEntropy())
    disks = [MemoryDisk(2**30) for _ in range(count)]
    services = []
    for index, disk in enumerate(() if servers is not None else disks):
        seed = b"%02d" % index * 10
        identity = ServerIdentity(server_id=ServerId(f"s{index}"), permutation_seed=seed, lease_seed=seed)
        services.append(StorageService(identity, disk, runtime, StorageSettings()))
        await services[-1].start()
    store = FileStore(
        grid=grid_of(
            services if servers is None else servers,
            runtime,
            leases=LeaseMaster(bytes(range(32))),
            encoding=encoding or Encoding(k=2, n=count, happy=count),
            convergence=convergence,
        )
    )
    settings = GatewaySettings(spools=SpoolFolder(folder), static_directory=folder, api_token=TOKEN)
    gateway = Gateway(store=store, client=_NoClient(), settings=settings)
    routes = Routes()
    routes.add(handlers or {})
    factory = GatewayFactory(
        gateway, routes if handlers is not None else make_routes(gateway), reactor, ConnectionLimit()
    )
    listening = await TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(factory)
    found = WebGateway(gateway, factory, services, disks, listening.getHost().port)
    try:
        yield found
    finally:
        for connection in found.open:
            await connection.close()
        await listening.stopListening()
        await factory.drain(1.0)
        for service in services:
            await service.stop()
