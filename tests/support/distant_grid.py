"""In-memory storage services behind connections as a client has them: two ways to each, sessions, backoff; virtual time.

A server can be down (connections are refused), or hung (nothing comes of them), and come back.
"""

from __future__ import annotations

from attrs import define, evolve

from grid.directory.file_store import FileStore
from grid.errors import PeerUnreachableError
from grid.limits import CONNECT_DEADLINE_S
from grid.ports import Clock, ServerVersion, StorageServer
from grid.wire.session import Connector, SessionKeeper
from grid.wire.status import ConnectionStatus, RemoteServer
from grid.wire.two_ways.fallback import FallbackServer, Way
from tests.support.scripted_way import ScriptedWay
from tests.support.tree_grid import TreeGrid

ROUND_TRIP_S = 0.01


@define(eq=False)
class _Session:
    version: ServerVersion


class DistantWay(ScriptedWay):
    """A way whose connections are made, shared, lost and made again as a transport's are."""

    def __init__(self, inner: StorageServer, name: str, clock: Clock) -> None:
        super().__init__(inner, name, clock)
        self.script.connect_s = 3 * ROUND_TRIP_S
        connector = Connector(transport=name, connect=self._make, address=lambda _: "tcp:there:1")
        where = f"server {inner.identity.server_id}"
        self._keeper: SessionKeeper[_Session] = SessionKeeper(connector, clock, where, CONNECT_DEADLINE_S)

    @property
    def status(self) -> ConnectionStatus:
        return self._keeper.status

    @property
    def known_version(self) -> ServerVersion | None:
        return None if self._keeper.current is None else self._keeper.current.version

    def asks_for_room(self, size: int) -> bool:
        return False

    def lose(self) -> None:
        if self._keeper.current is not None:
            self._keeper.lost(self._keeper.current, "the connection was lost")

    def forget_failures(self) -> None:
        self._keeper.forget_failures()

    async def connect(self) -> None:
        await self._keeper.session()

    async def _make(self) -> _Session:
        self.connects += 1
        if self.script.down:
            raise PeerUnreachableError(self.script.down, reason=self.script.down)
        await self._clock.sleep(self.script.connect_s)
        return _Session(await self._inner.get_version())


class DistantGrid(TreeGrid):
    """Ten such servers, and a client of them."""

    def __init__(self) -> None:
        self.distant: list[RemoteServer] = []
        super().__init__()
        clock = self.runtime.clock
        self.ways = [
            (DistantWay(server, "http", clock), DistantWay(server, "foolscap", clock)) for server in self.servers
        ]
        self.distant = [self._join(*ways) for ways in self.ways]
        self.store = self.client()

    def _join(self, http: DistantWay, foolscap: DistantWay) -> RemoteServer:
        return FallbackServer(
            http.identity,
            Way(name="HTTP", make=lambda: http),
            Way(name="Foolscap", make=lambda: foolscap),
            self.runtime.clock,
        )

    def client(self) -> FileStore:
        store = super().client()
        return evolve(store, grid=evolve(store.grid, servers=self.distant))

    def stop(self, *indices: int) -> None:
        """Kill these servers: connections are lost, and refused."""
        for way in self._of(indices):
            way.script.down = "connection refused"
            way.lose()

    def start(self, *indices: int) -> None:
        """They are back, at the same places."""
        for way in self._of(indices):
            way.script.down = ""
            way.script.connect_s = 3 * ROUND_TRIP_S
            way.script.silent = False

    def hang(self, *indices: int) -> None:
        """From now on connections and calls get no answer, without any notice."""
        for way in self._of(indices):
            way.script.connect_s = 1e9
            way.script.silent = True

    def attempts(self, index: int) -> int:
        """How often a connection to the server was attempted, over the busier way."""
        return max(way.connects for way in self.ways[index])

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.run(self.runtime.clock.sleep(seconds))

    def _of(self, indices: tuple[int, ...]) -> list[DistantWay]:
        return [way for index in indices for way in self.ways[index]]
