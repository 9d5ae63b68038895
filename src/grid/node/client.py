"""The client of a node directory: assembles its servers, secrets and encoding for the engines.

Connections are opened on demand: the introducers' when the servers are requested, a server's when an engine first calls
it. Foolscap is imported when first needed. Cost of finding the servers: one connection and three round trips to each
introducer; remembered servers cost a file read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from attrs import evolve

from grid.codec.key_text import parse_verifying_key
from grid.crypto.ed25519 import VerifyingKey
from grid.discovery.announcement import STORAGE_SERVICE
from grid.discovery.condition import Condition
from grid.discovery.factories import Transports
from grid.discovery.server_files import read_cache, read_static_servers
from grid.discovery.server_set import ServerSet
from grid.drive import RestOfRuns
from grid.engine.grid import Encoding, Grid, Remembered
from grid.engine.server_memory import ServerMemory
from grid.errors import ConfigError, FormatError, NoServersError
from grid.node.config import require_plain_tcp
from grid.node.directory import NodeDirectory
from grid.node.introducers import STATIC_FILE_NAME, cache_file, read_introducers
from grid.node.memory_file import MemoryFile
from grid.node.prober import Prober
from grid.placement.leases import LeaseMaster
from grid.ports import Observer, Runtime, ServerId, StorageServer, ignore_events
from grid.version import __version__

if TYPE_CHECKING:
    from grid.discovery.introducer_client import IntroducerClient

DISCOVERY_S = 20.0
"""Seconds to wait for the first introducer's list of servers."""

OTHERS_S = 2.0
"""Seconds to wait for the other introducers after the first has answered."""

MEMORY_S = 12 * 3600.0
"""The greatest age, in seconds, of a remembered list of servers with which reads may begin."""


class Client:
    """A running client of a node directory, until `close`."""

    def __init__(self, directory: NodeDirectory, runtime: Runtime, reactor: Any) -> None:  # noqa: ANN401
        """Read the files that locate servers, but open nothing. ConfigError."""
        require_plain_tcp(directory.settings)
        self.directory = directory
        self.runtime = runtime
        self._reactor = reactor
        self._tub: Any = None
        self._pool: Any = None
        self.memory = ServerMemory()
        """How servers have answered recently, saved across processes."""
        self.remembered = Remembered()
        """What is known of files; several clients of one user may share it within a process."""
        settings = directory.settings.client
        transports = Transports(
            tub=self._foolscap_tub,
            pool=self._http_pool,
            runtime=runtime,
            memory=self.memory,
            # Only Foolscap supports a configuration that forbids connections.
            choice=settings.transport if directory.settings.tcp_handler == "tcp" else "foolscap",
            plaintext_reads=settings.plaintext_reads,
        )
        self._memory_file = MemoryFile(directory.private / "server_memory.json", self.memory, runtime.clock)
        self._memory_file.load()
        self.server_set = ServerSet(
            transports.server_maker(), runtime.clock, _manager_keys(directory), on_return=self._returned
        )
        self._prober = Prober(self.memory, runtime, self.server_set.find)
        self._condition = Condition(runtime.clock)
        self._furls = read_introducers(directory)
        self._introducers: list[IntroducerClient] | None = None
        for announcement in read_static_servers(directory.private / STATIC_FILE_NAME):
            self.server_set.add_static(announcement)
        self._started = False

    @property
    def introducers(self) -> list[IntroducerClient]:
        """The connections to the introducers, opened or not."""
        if self._introducers is None:
            self._introducers = self._make_introducers()
        return self._introducers

    @property
    def encoding(self) -> Encoding:
        """The encoding of new files."""
        settings = self.directory.settings.client
        return Encoding(
            k=settings.needed, n=settings.total, happy=settings.happy, max_segment_size=settings.max_segment_size
        )

    @cached_property
    def _secrets(self) -> tuple[LeaseMaster, bytes | None]:
        """The master of lease secrets and the convergence secret, read once. ConfigError."""
        convergent = self.directory.settings.client.convergent
        return LeaseMaster(self.directory.lease_master()), self.directory.convergence_secret() if convergent else None

    def grid(self, servers: Sequence[StorageServer], observer: Observer = ignore_events) -> Grid:
        """A Grid of these servers with the node's secrets and settings. ConfigError."""
        leases, convergence = self._secrets
        return evolve(
            self.grid_to_read(servers, observer),
            leases=leases,
            convergence=convergence,
            preferred=frozenset(ServerId(name) for name in self.directory.settings.client.preferred),
        )

    def grid_to_read(self, servers: Sequence[StorageServer], observer: Observer = ignore_events) -> Grid:
        """The same for reading immutable files, without any of the node's secrets."""
        return Grid(
            servers=servers,
            runtime=self.runtime,
            encoding=self.encoding,
            observer=observer,
            memory=self.memory,
            remembered=self.remembered,
        )

    def start(self) -> None:
        """Start connecting to the introducers; servers() does this too."""
        if not self._started:
            self._started = True
            for introducer in self.introducers:
                introducer.start()

    def start_probing(self) -> None:
        """From now until close(), ask servers in doubt in the background: for long-running clients."""
        self._prober.start()

    def probe_once(self) -> None:
        """Ask in the background whether the servers that the last process left in doubt are back: for commands.

        They are asked at their last announced addresses, so they have answered by the time the introducers have.
        """
        in_doubt = set(self.memory.in_doubt())
        if not in_doubt:
            return
        for petname in self._furls:
            for announcement in read_cache(self._cache_file(petname)):
                if announcement.server_id in in_doubt:
                    self.server_set.announced(announcement)
        self._prober.ask_once()

    async def servers(self) -> list[StorageServer]:
        """All known servers, once an introducer has announced its own; NoServersError with the reason if there are
        none.
        """
        self.start()
        await self._condition.wait_until(self._some_settled, DISCOVERY_S)
        await self._condition.wait_until(self._all_settled, OTHERS_S)
        servers = self.server_set.servers
        if not servers:
            raise self._explain()
        return servers

    def remembered_servers(self) -> list[StorageServer]:
        """The servers known now, including those that introducers announced last time, unless that was long ago.

        For reads only: a missing server costs a read time, but a put must not overlook a new one.
        """
        if self._started and self._all_settled():
            return self.server_set.servers
        now = self.runtime.clock.unix_time()
        for petname in self._furls:
            file = self._cache_file(petname)
            if not _is_recent(file, now):
                return []
            for announcement in read_cache(file):
                if announcement.service_name == STORAGE_SERVICE:
                    self.server_set.announced(announcement)
        return self.server_set.servers

    async def close(self) -> None:
        """Close all connections, and save for the next process which servers are in doubt."""
        self._prober.close()
        self.remembered.of(RestOfRuns).cancel()
        self._memory_file.save()
        for introducer in self._introducers or ():
            introducer.close()
        self.server_set.close()
        if self._pool is not None:
            self._pool.close()
        if self._tub is not None:
            from grid.wire.foolscap.tub import stop_tub

            await stop_tub(self._tub, self.runtime.clock)

    def _returned(self, server_id: ServerId) -> None:
        self.memory.heard(server_id, self.runtime.clock.now())

    def _cache_file(self, petname: str) -> Path:
        return cache_file(self.directory.private, petname)

    def _make_introducers(self) -> list[IntroducerClient]:
        from grid.discovery.introducer_client import IntroducerClient, IntroducerSettings

        return [
            IntroducerClient(
                IntroducerSettings(
                    furl=furl,
                    petname=petname,
                    nickname=self.directory.settings.nickname,
                    version=f"grid/{__version__}",
                    cache_file=self._cache_file(petname),
                    enough=self.directory.settings.client.happy,
                ),
                self._foolscap_tub(),
                self.runtime.clock,
                self.server_set.announced,
                self._condition.changed,
                self.server_set.recalled,
            )
            for petname, furl in self._furls.items()
        ]

    def _foolscap_tub(self) -> Any:  # noqa: ANN401 - foolscap has no types
        if self._tub is None:
            from grid.node.tubs import client_tub

            self._tub = client_tub(self.directory.settings)
        return self._tub

    def _http_pool(self) -> Any:  # noqa: ANN401 - only those who use HTTP import it
        if self._pool is None:
            from grid.wire.http.client.pool import Pool

            self._pool = Pool(self._reactor, self.runtime.clock)
        return self._pool

    def _all_settled(self) -> bool:
        return all(introducer.is_settled for introducer in self.introducers)

    def _some_settled(self) -> bool:
        settled = any(introducer.is_settled for introducer in self.introducers)
        return self._all_settled() or (settled and bool(self.server_set.servers))

    def _explain(self) -> NoServersError | ConfigError:
        if not self.introducers:
            where = self.directory.private / "introducers.yaml"
            return ConfigError(
                f"{where}: no introducer is configured, so no storage server can be found; "
                "`grid config set client.introducer.furl FURL` names one"
            )
        details = [introducer.status.detail for introducer in self.introducers if introducer.status.detail]
        if details:
            return NoServersError(f"no introducer could be reached: {details[0]}; is it running?")
        return NoServersError("the introducer knows no storage servers; are they running?")


class LiveServers(Sequence[StorageServer]):
    """The servers known at each moment, looked up at each use."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @overload
    def __getitem__(self, index: int) -> StorageServer: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[StorageServer]: ...

    def __getitem__(self, index: int | slice) -> StorageServer | Sequence[StorageServer]:
        return self._client.server_set.servers[index]

    def __len__(self) -> int:
        return len(self._client.server_set.servers)

    def __iter__(self) -> Iterator[StorageServer]:
        return iter(self._client.server_set.servers)


def _is_recent(file: Path, now: float) -> bool:
    try:
        return 0 <= now - file.stat().st_mtime <= MEMORY_S
    except OSError:
        return False


def _manager_keys(directory: NodeDirectory) -> list[VerifyingKey]:
    keys = []
    for name, text in directory.settings.grid_managers:
        try:
            keys.append(parse_verifying_key(text))
        except FormatError:
            raise ConfigError(
                f"{directory.config_file}: section [grid_managers], key {name}: expected pub-v0- and a public key"
            ) from None
    return keys
