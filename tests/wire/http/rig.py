"""An HTTP storage server and its client in one process, over an in-memory storage service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import frozen
from twisted.internet import reactor
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.protocol import Factory

from grid.ports import Buffer, Runtime, ServerId, ServerIdentity, StorageServer
from grid.runtime import ReactorClock, RealRuntime, SystemEntropy, ThreadCpuPool
from grid.storage.calls.service import StorageService
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import StorageSettings
from grid.wire.budget.server_memory import ServerMemory
from grid.wire.connections.connection_limit import ConnectionLimit
from grid.wire.foolscap.tub import throwaway_certificate
from grid.wire.http.client.pool import Address, Pool
from grid.wire.http.client.requester import Access, HttpRequest, Reply, Requester
from grid.wire.http.client.server import HttpServer
from grid.wire.http.format.authority import authorization, plain_authorization
from grid.wire.http.format.tls import server_context, spki_hash_of_pem
from grid.wire.http.server.listeners import HttpOffer, PlainFactory, SharedPortFactory
from grid.wire.locators import Nurl

SWISSNUM = "swissnumswissnumswissnumswissnum"
NODE_ID = bytes(range(20))


@cache
def pool_of_threads() -> ThreadCpuPool:
    """Threads that all tests of this process share."""
    pool = ThreadCpuPool(reactor, 2)
    reactor.addSystemEventTrigger("before", "shutdown", pool.stop)
    return pool


def make_runtime() -> Runtime:
    """The real clock, entropy and threads."""
    return RealRuntime(clock=ReactorClock(reactor), cpu=pool_of_threads(), entropy=SystemEntropy())


@cache
def certificate() -> bytes:
    """A PEM certificate and its key."""
    return throwaway_certificate()


def tls_context() -> Any:
    """TLS with that certificate."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "node.pem"
        path.write_bytes(certificate())
        return server_context(path)


def make_identity(name: str = "v0-test") -> ServerIdentity:
    """Who the server is."""
    return ServerIdentity(server_id=ServerId(name), permutation_seed=NODE_ID, lease_seed=NODE_ID)


async def make_service(**settings: Any) -> StorageService:
    """A storage service in memory."""
    service = StorageService(make_identity(), MemoryDisk(), make_runtime(), StorageSettings(**settings))
    await service.start()
    return service


class RefusingFactory(Factory):
    """Stands for Foolscap: no call should arrive here."""

    def buildProtocol(self, addr: Any) -> None:
        return None


@frozen(kw_only=True)
class Rig:
    """A listening server, and the requests that reach it."""

    service: StorageServer
    offer: HttpOffer
    connection_limit: ConnectionLimit
    port: int
    plain_port: int
    nurl: Nurl
    pool: Pool
    client: HttpServer


@asynccontextmanager
async def running(
    service: StorageServer,
    *,
    plain: bool = False,
    foolscap: Any = None,
    extensions: bool = True,
    memory: ServerMemory | None = None,
) -> AsyncIterator[Rig]:
    """The service offered on loopback, with a client; all connections are closed at the end. memory: the server's."""
    runtime = make_runtime()
    offer = HttpOffer(service, memory or ServerMemory(runtime.clock), extensions=extensions)
    offer.open_to(SWISSNUM)
    connection_limit = ConnectionLimit()
    factory = SharedPortFactory(
        foolscap or RefusingFactory(), tls_context(), offer.connections, runtime.clock, connection_limit
    )
    listening = await TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(factory)
    plain_listening = await TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(
        PlainFactory(offer.plain_connections, connection_limit)
    )
    port, plain_port = listening.getHost().port, plain_listening.getHost().port
    nurl = Nurl(spki_hash=spki_hash_of_pem(certificate()), host="127.0.0.1", port=port, swissnum=SWISSNUM)
    pool = Pool(reactor, runtime.clock)
    client = HttpServer(make_identity(), [nurl], pool, runtime, ("127.0.0.1", plain_port) if plain else None)
    try:
        yield Rig(
            service=service,
            offer=offer,
            connection_limit=connection_limit,
            port=port,
            plain_port=plain_port,
            nurl=nurl,
            pool=pool,
            client=client,
        )
    finally:
        client.close()
        pool.close()
        offer.close()
        await listening.stopListening()
        await plain_listening.stopListening()


async def ask(
    rig: Rig,
    method: str,
    path: str,
    body: Sequence[Buffer] | None = None,
    *,
    secrets: Mapping[str, bytes] | None = None,
    headers: Sequence[tuple[str, str]] = (),
    swissnum: str = SWISSNUM,
    in_the_clear: bool = False,
) -> Reply:
    """The server's answer to a request made of these parts; path: after /storage/v1/."""
    if in_the_clear:
        access = Access(Address("127.0.0.1", rig.plain_port, None), plain_authorization(swissnum))
    else:
        access = Access(Address("127.0.0.1", rig.port, rig.nurl.spki_hash), authorization(swissnum))
    request = HttpRequest(
        method=method.encode(),
        path=f"/storage/v1/{path}".encode(),
        secrets=secrets or {},
        headers=tuple((name.encode(), value.encode()) for name, value in headers),
        body=body,
    )
    return await Requester(rig.pool, "the server").ask(access, request)
