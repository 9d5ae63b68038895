"""A gateway for a browser, as a separate process, over in-memory servers that can be switched off and on.

    python -m tests.browser.serving FOLDER

prints the port that it listens on, and that of a read-only gateway over the same servers. On stdin it takes lines `down N`
and `up N`, for the server with that number, and `slow MS`, for what every call of a server takes from then on, and `hold`
and `release`, between which no call of a server is begun. `trust` lets the gateway hear from servers that it doubts, as a client
does from its probes; no client of these tests sends any. `storage` makes the first server that of the gateway's own node,
and `no-storage` ends that. It answers each with `ok`, and `pages` also with the functions that rendered pages since it was
last asked. It ends when its stdin does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any

from attrs import define, evolve
from twisted.internet import task
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.protocols.basic import LineReceiver

from grid.directory.file_store import FileStore
from grid.engine.grid import Encoding, Grid
from grid.errors import PeerGoneError
from grid.gateway.http.server import GatewayFactory
from grid.gateway.pages import shell
from grid.gateway.shared.blacklist import Blacklist
from grid.gateway.shared.node_view import ServerView
from grid.gateway.shared.services import LOOPBACK_HOSTS, GatewaySettings
from grid.gateway.shared.spool import SpoolFolder
from grid.gateway.site import Gateway, make_routes
from grid.node.own_files import ClientFiles
from grid.node.share_file import ShareFile
from grid.node.storage_node import LocalStorage
from grid.placement.leases import LeaseMaster
from grid.ports import ServerId, ServerIdentity
from grid.runtime import ReactorClock, RealRuntime, SystemEntropy, ThreadCpuPool
from grid.storage.calls.service import StorageService
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import StorageSettings
from grid.storage.upkeep.housekeeping import Housekeeping
from grid.wire.connections.connection_limit import ConnectionLimit

NICKNAMES = ("Ada", "Barbara", "Edsger", "Grace", "Leslie")


@define(eq=False)
class Switched:
    """A server that may be switched off: then every call fails as if nobody were there."""

    service: StorageService
    reactor: Any
    is_down: bool = False
    delay_s: float = 0.0
    held: list[Deferred[None]] | None = None

    def release(self) -> None:
        """Release held requests, and hold no more."""
        waiting, self.held = self.held or [], None
        for each in waiting:
            each.callback(None)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.service, name)
        if name.startswith("_") or not callable(found):
            return found

        async def call(*arguments: Any, **named: Any) -> Any:
            if self.held is not None:
                self.held.append(Deferred())
                await self.held[-1]
            if self.delay_s:
                await task.deferLater(self.reactor, self.delay_s)
            if self.is_down:
                raise PeerGoneError("the server is switched off")
            return await found(*arguments, **named)

        return call


@define
class View:
    """What the pages show of the servers."""

    servers_there: Sequence[Switched]

    def servers(self) -> Sequence[ServerView]:
        """All of them."""
        return [
            ServerView(
                server_id=server.service.identity.server_id,
                nickname=nickname,
                is_connected=not server.is_down,
                status="the server is switched off" if server.is_down else "Connected",
                version="grid/1",
                available_space=None if server.is_down else 2**30,
                latency_s=None if server.is_down else 0.0031,
                last_received_at=1.79e9,
            )
            for nickname, server in zip(NICKNAMES, self.servers_there, strict=True)
        ]

    def introducers(self) -> Sequence[str]:
        """Of one."""
        return ["introducer: connected"]


class Orders(LineReceiver):
    """What the tests ask for."""

    delimiter = b"\n"

    def __init__(self, servers: Sequence[Switched], gateway: Gateway, grid: Grid, ended: Deferred[None]) -> None:
        self._servers = servers
        self._gateway = gateway
        self._grid = grid
        self._ended = ended
        self._rendered = note_pages()

    def lineReceived(self, line: bytes) -> None:
        """An order."""
        word, _, number = line.decode("ascii").partition(" ")
        said = ""
        if word == "slow":
            for server in self._servers:
                server.delay_s = int(number) / 1000
        elif word in ("hold", "release"):
            for server in self._servers:
                server.release()
                server.held = [] if word == "hold" else None
        elif word == "trust":
            self._trust()
        elif word in ("storage", "no-storage"):
            service = self._servers[0].service
            keeper = Housekeeping(service, StorageSettings().expire, self._gateway.store.runtime.clock)
            own = LocalStorage(service, keeper, StorageSettings())
            self._gateway.storage = own if word == "storage" else None
        elif word == "pages":
            said = " ".join(sorted(self._rendered))
            self._rendered.clear()
        else:
            self._servers[int(number)].is_down = word == "down"
        print(f"ok {said}", flush=True)

    def _trust(self) -> None:
        """Let every server in doubt have answered whatever it was asked."""
        memory, now = self._grid.memory, self._grid.runtime.clock.now()
        for server_id in memory.in_doubt():
            for kind in memory.silent_on(server_id):
                memory.answered(server_id, kind, now)
            memory.heard(server_id, now)

    def connectionLost(self, reason: object = None) -> None:
        """The tests are over."""
        self._ended.callback(None)


def note_pages() -> set[str]:
    """Note from now on which functions render pages: the module's name, a dot, and the function's."""
    noted: set[str] = set()
    render = shell.document

    @wraps(render)
    def document(*parts: Any, **named: Any) -> str:
        noted.add(_renderer(sys._getframe(1)))
        return render(*parts, **named)

    for module in [module for name, module in sys.modules.items() if name.startswith("grid.gateway.")]:
        for name in [name for name, value in vars(module).items() if value is render]:
            setattr(module, name, document)
    return noted


def _renderer(frame: FrameType | None) -> str:
    while frame is not None and not frame.f_code.co_name.startswith("render_"):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_globals['__name__'].rpartition('.')[2]}.{frame.f_code.co_name}"


async def serve(reactor: Any, folder: Path) -> None:
    """Until stdin ends."""
    from twisted.internet import stdio

    pool = ThreadCpuPool(reactor, 2)
    runtime = RealRuntime(clock=ReactorClock(reactor), cpu=pool, entropy=SystemEntropy())
    servers = []
    for index in range(len(NICKNAMES)):
        seed = b"%02d" % index * 10
        identity = ServerIdentity(server_id=ServerId(f"v0-{index}"), permutation_seed=seed, lease_seed=seed)
        service = StorageService(identity, MemoryDisk(2**30), runtime, StorageSettings())
        await service.start()
        servers.append(Switched(service, reactor))
    there: Any = servers
    encoding = Encoding(k=2, n=5, happy=2, max_segment_size=2**17)
    grid = Grid(
        servers=there,
        runtime=runtime,
        leases=LeaseMaster(bytes(32)),
        encoding=encoding,
        convergence=b"convergence",
    )
    store = FileStore(grid=grid)
    settings = GatewaySettings(
        spools=SpoolFolder(folder),
        static_directory=folder / "public_html",
        api_token=b"token",
        hosts=LOOPBACK_HOSTS,
        happy=2,
        nickname="My grid",
        own_files=ClientFiles(folder),
        share_links=ShareFile(folder),
    )
    blocks = Blacklist(folder / "access.blacklist")
    gateway = Gateway(store=store, client=View(servers), settings=settings, blocks=blocks)
    gateway.statistics.start()
    visited = Gateway(store=store, client=View(servers), settings=evolve(settings, is_read_only=True), blocks=blocks)
    doors = []
    for each in (gateway, visited):
        factory = GatewayFactory(each, make_routes(each), reactor, ConnectionLimit())
        doors.append((factory, await TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(factory)))
    ended: Deferred[None] = Deferred()
    stdio.StandardIO(Orders(servers, gateway, grid, ended))
    print(*(port.getHost().port for _, port in doors), flush=True)
    await ended
    for _, port in doors:
        await port.stopListening()
    gateway.end_streams()
    visited.end_streams()
    gateway.statistics.close()
    for factory, _ in doors:
        await factory.drain(1.0)
    for server in servers:
        await server.service.stop()
    pool.stop()


def main() -> None:
    """Run until stdin ends."""
    task.react(lambda reactor: Deferred.fromCoroutine(serve(reactor, Path(sys.argv[1]))))


if __name__ == "__main__":
    main()
