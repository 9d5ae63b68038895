"""The web gateway of a node directory: assembled, listening, and shut down in order. [spec webapi 1.1]

Owns where it listens, its token and `node.url`, and the connections to servers that it keeps open.
"""

from __future__ import annotations

import errno
import os
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from OpenSSL.SSL import Error as SSLError
from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError

from grid.directory.file_store import FileStore
from grid.discovery.server_set import ServerEntry
from grid.errors import ConfigError, GridError, PeerTimeoutError
from grid.gateway.http.server import GatewayFactory
from grid.gateway.monitoring.statistics import StorageView
from grid.gateway.shared.blacklist import Blacklist
from grid.gateway.shared.node_view import ServerView
from grid.gateway.shared.proxies import TrustedProxies
from grid.gateway.shared.services import AllowedHosts, GatewaySettings
from grid.gateway.shared.spool import SpoolFolder
from grid.gateway.site import Gateway, make_site
from grid.mutable.share.geometry import FormatName
from grid.node.blacklist_file import BlacklistFile
from grid.node.client import Client, LiveServers
from grid.node.directory import NodeDirectory
from grid.node.files import PUBLIC_MODE, make_private_directory, write_atomically
from grid.node.own_files import ClientFiles
from grid.node.redaction import one_line
from grid.node.share_file import DOOR_URLS, PUBLIC_URL, READ_ONLY, READ_WRITE, VISITORS, ShareFile
from grid.node.web_address import (
    PortInUseError,
    allowed_hosts,
    is_on_loopback,
    place_to_listen,
    url_for_others,
    url_of,
)
from grid.placement.space import lack_of_room
from grid.plural import counted
from grid.ports import ServerId, StorageServer, Timer
from grid.runtime import Tasks, with_deadline
from grid.values import define, field, frozen
from grid.wire.connections.connection_limit import ConnectionLimit
from grid.wire.connections.limited_factory import deepen_backlog
from grid.wire.status import ConnectionState, ConnectionStatus, clock_text

LOOK_S = 10.0
"""Seconds after which connected servers are asked for their status."""

RETRY_S = 5.0
"""Seconds after which other servers are tried again, unless the backoff of their connections forbids it."""

ANSWER_S = 15.0

SILENT_S = 4.0
"""Seconds after which a connected server that was asked counts as not connected until it answers."""

TOKEN_SIZE = 32


@define(eq=False)
class LiveClient:
    """The gateway's view of its node, kept current by asking every server periodically."""

    _client: Client
    _latency_s: dict[ServerId, float]
    _heard_at: dict[ServerId, float]
    _tasks: Tasks
    _silent: set[ServerId] = field(factory=set)
    _asked_at: dict[ServerId, float] = field(factory=dict)
    _timer: Timer | None = None

    def start(self) -> None:
        """Start connecting."""
        self._client.start()
        self._client.start_probing()
        self._look()

    def close(self) -> None:
        """Stop the periodic checks."""
        self._tasks.cancel()
        if self._timer is not None:
            self._timer.cancel()

    def servers(self) -> Sequence[ServerView]:
        """All announced servers, connected or not, each once even if announced under several ids."""
        entries = [entry for entry in self._client.server_set.entries if not entry.is_recalled]
        names: dict[ServerId, list[ServerId]] = {}
        for entry in entries:
            names.setdefault(entry.counts_as, []).append(entry.identity.server_id)
        return [self._view(entry, names[entry.counts_as]) for entry in entries if entry.is_counted]

    def introducers(self) -> Sequence[str]:
        """The state of the connection to each introducer, one line each."""
        return [introducer_line(introducer.petname, introducer.status) for introducer in self._client.introducers]

    def _view(self, entry: ServerEntry, names: Sequence[ServerId]) -> ServerView:
        status, identity = entry.status, entry.identity
        is_silent = status.state is ConnectionState.CONNECTED and identity.server_id in self._silent
        connected = status.state is ConnectionState.CONNECTED and not is_silent
        starting = status.state in (ConnectionState.IDLE, ConnectionState.CONNECTING) and not status.detail
        why = "no answer" if is_silent else "connecting" if starting else ""
        line = _connected_line(status) if connected else _missing_line(entry, why)
        if others := [name for name in names if name != identity.server_id]:
            more = f" and {len(others) - 1} more" if others[1:] else ""
            line = f"{line}; also announced as {others[0]}{more}: counted once"
        version = status.version
        lack = lack_of_room(version.available_space, version.is_read_only) if version is not None else None
        if connected and lack is not None:
            line = f"{line}; {lack}: it takes no new files"
        return ServerView(
            server_id=identity.server_id,
            nickname=identity.nickname,
            is_connected=connected,
            status=line,
            version=None if version is None else version.application,
            available_space=None if version is None else version.available_space,
            last_received_at=self._heard_at.get(identity.server_id),
            transport=status.transport,
            latency_s=self._latency_s.get(identity.server_id),
            host=status.host,
            clock_ahead_s=status.clock_ahead_s,
            is_connecting=starting,
            is_read_only=None if version is None else version.is_read_only,
        )

    def _look(self) -> None:
        """Ask the servers whose turn it is, and look again later; sooner while none is known."""
        entries, now = self._client.server_set.entries, self._client.runtime.clock.now()
        is_fine = {
            entry.identity.server_id: entry.status.state is ConnectionState.CONNECTED
            for entry in entries
            if entry.identity.server_id not in self._silent
        }
        servers = self._client.server_set.servers
        for server in servers:
            name = server.identity.server_id
            if now >= self._asked_at.get(name, float("-inf")) + (LOOK_S if is_fine.get(name) else RETRY_S):
                self._asked_at[name] = now + ANSWER_S  # Until it answers, or does not.
                self._tasks.start(self._ask(server), on_error=lambda _: None)
        self._timer = self._client.runtime.clock.call_later(RETRY_S if servers else 0.5, self._look)

    async def _ask(self, server: StorageServer) -> None:
        clock, name = self._client.runtime.clock, server.identity.server_id
        began_at = clock.now()
        # Its connection may count as open for long if packets are lost.
        doubt = clock.call_later(SILENT_S, lambda: self._silent.add(name))
        try:
            await with_deadline(clock, server.get_version(), ANSWER_S, lambda: PeerTimeoutError("no answer"))
        except PeerTimeoutError:
            self._silent.add(name)
            return
        except GridError:
            return
        finally:
            doubt.cancel()
            self._asked_at[name] = clock.now()
        self._silent.discard(name)
        self._client.memory.heard(name, clock.now())
        self._latency_s[name] = clock.now() - began_at
        self._heard_at[name] = clock.unix_time()


@frozen(kw_only=True)
class Listening:
    """A listening gateway and its URL; None for a Unix socket.

    tell_programs: writes `node.url` and the files beside it, which say that the node can be used: to be called once all of
    the node's interfaces listen.
    """

    gateway: Gateway
    factory: GatewayFactory
    url: str | None
    tell_programs: Callable[[], None]


@asynccontextmanager
async def running_gateway(
    directory: NodeDirectory,
    client: Client,
    connection_limit: ConnectionLimit,
    reactor: Any,  # noqa: ANN401
    description: str,
    say: Callable[[str], None],
    storage: StorageView | None = None,
) -> AsyncIterator[Listening]:
    """Serve the node's gateway while the context lasts; then let running requests finish, within a limit. ConfigError.

    connection_limit: on all connections of this process. description: where to listen, as in `[node] web.port`.
    storage: the node's own storage server, or None.
    """
    where = f"the address to listen on (--listen, or web.port under [node] in {directory.config_file})"
    description = place_to_listen(description)
    hosts = allowed_hosts(description, directory.settings)
    view = LiveClient(client, {}, {}, Tasks())
    blocks = Blacklist(BlacklistFile(directory.path).path)
    gateway = Gateway(
        store=make_store(client), client=view, settings=_settings(directory, hosts), blocks=blocks, storage=storage
    )
    factory = make_site(gateway, reactor, connection_limit)
    factory.is_below_tls = description.startswith("ssl:")
    try:
        port = deepen_backlog(await serverFromString(reactor, description).listen(factory))
    except (ValueError, TypeError, KeyError) as problem:
        raise ConfigError(f"{where}: not a server endpoint such as 3456 or tcp:3456:interface=127.0.0.1") from problem
    except (OSError, OverflowError, CannotListenError, SSLError) as problem:
        if isinstance(problem, CannotListenError) and getattr(problem.socketError, "errno", 0) == errno.EADDRINUSE:
            cure = f"choose another web.port under [node] in {directory.config_file}"
            raise PortInUseError(problem.port, cure) from problem
        hint = "; privateKey= and certKey= name its key and certificate, PEM files" if factory.is_below_tls else ""
        raise ConfigError(f"{where}: cannot listen there: {one_line(str(problem))}{hint}") from problem
    url = url_of(description, port.getHost())
    try:
        write_atomically(directory.private / "api_auth_token", gateway.settings.api_token)
        view.start()
        gateway.statistics.start()
        for line in introduction(url, description, gateway.settings):
            say(line)
        tell = partial(_tell_programs, directory.path, url, gateway)
        yield Listening(gateway=gateway, factory=factory, url=url, tell_programs=tell)
    finally:
        await port.stopListening()
        gateway.end_streams()
        gateway.statistics.close()
        if factory.requests:
            say(
                f"waiting up to {gateway.settings.drain_s:.0f} s for {counted(len(factory.requests), 'request')} in progress"
            )
        await factory.drain(gateway.settings.drain_s)
        view.close()


def introducer_line(petname: str, status: ConnectionStatus) -> str:
    """The state of the connection to an introducer. If connected, the line begins as in 1.20. [spec webapi 9.1]"""
    if status.state is ConnectionState.CONNECTED:
        return f"{_connected_line(status)} ({petname})"
    return f"{petname}: {status.state.value}" + (f" ({one_line(status.detail)})" if status.detail else "")


def _missing_line(entry: ServerEntry, why: str = "") -> str:
    """Why a server is not connected, if not for the reason of its status, and where it says that it is."""
    where = f" ({', '.join(entry.addresses[:2])})" if entry.addresses else ""
    return one_line((why or entry.status.detail or entry.status.state.value) + where)


def _connected_line(status: ConnectionStatus) -> str:
    """The line for a connection, beginning as 1.20's for Foolscap, which programs look for. [spec webapi 9.1]"""
    how = "http" if status.transport == "http" else "tcp"
    fallback = f" ({status.fallback})" if status.fallback else ""
    clock = f"; {text}" if (text := clock_text(status.clock_ahead_s)) else ""
    return one_line(f"Connected to {status.address or 'its address'} via {how}{fallback}{clock}")


def make_store(client: Client) -> FileStore:
    """The node's store, with a live list of servers."""
    settings = client.directory.settings.client
    mutable_format: FormatName = "mdmf" if settings.mutable_format == "MDMF" else "sdmf"
    return FileStore(grid=client.grid(LiveServers(client)), mutable_format=mutable_format)


def _tell_programs(directory: Path, url: str | None, gateway: Gateway) -> None:
    """Write the address last: programs that find it expect the rest."""
    settings, doors = gateway.settings, {door.name: door.address for door in gateway.doors}
    for name, file in DOOR_URLS.items():
        _tell(directory / file, doors.get(name))
    _tell(directory / VISITORS, READ_ONLY if settings.is_read_only else READ_WRITE)
    _tell(directory / PUBLIC_URL, None if url is None else url_for_others(url, settings.hosts))
    _tell(directory / "node.url", url)


def _tell(file: Path, text: str | None) -> None:
    """Write what programs look for, such as the address, or remove that of an earlier start if there is none."""
    if text is None:
        file.unlink(missing_ok=True)
    else:
        write_atomically(file, f"{text}\n".encode("ascii"), PUBLIC_MODE)


def introduction(url: str | None, description: str, settings: GatewaySettings) -> Iterator[str]:
    """Yield what a gateway says about its addresses. url: as `url_of` returns it. description: of its endpoint."""
    yield f"web gateway at {url or description}"
    others = url_for_others(url, settings.hosts) if url is not None else None
    if others is not None:
        yield f"for other machines: {others}{_rights(settings)}"
    if settings.is_read_only and url is not None and not is_on_loopback(url):
        yield "read-only for you, too: `grid web` needs a gateway that also listens on loopback (interface=0.0.0.0)"


def _rights(settings: GatewaySettings) -> str:
    return ", read-only" if settings.is_read_only else ", where anyone can store files: --read-only prevents that"


def _settings(directory: NodeDirectory, hosts: AllowedHosts | None) -> GatewaySettings:
    token = urlsafe_b64encode(os.urandom(TOKEN_SIZE))
    make_private_directory(directory.private)
    make_private_directory(directory.temporary_path)
    return GatewaySettings(
        spools=SpoolFolder(directory.temporary_path),
        static_directory=directory.path / directory.settings.web_static,
        api_token=token,
        hosts=hosts,
        happy=directory.settings.client.happy,
        nickname=directory.settings.nickname,
        drain_s=directory.settings.web_drain_s,
        incidents_directory=directory.path / "logs" / "incidents",
        undo_file=directory.private / "undo",
        own_files=ClientFiles(directory.private),
        share_links=ShareFile(directory.private),
        is_read_only=directory.settings.web_read_only,
        proxies=TrustedProxies.of(directory.settings.web_proxies),
    )
