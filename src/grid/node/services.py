"""The services of a node's process: an introducer, or a client that may also store shares.

Each runs until its task is cancelled, and then shuts down in order: it accepts nothing new, aborts uploads in progress,
and closes connections.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from grid.allocator import return_freed_memory
from grid.codec import base32
from grid.discovery.announcement import SignedAnnouncement, sign, storage_fields
from grid.discovery.introducer_client import IntroducerClient, IntroducerSettings
from grid.discovery.introducer_server import Introducer
from grid.errors import ConfigError
from grid.limits import MAX_CONNECTIONS, MAX_STORAGE_CONNECTIONS
from grid.mutable.write.staging import encoding_notice
from grid.node.client import Client
from grid.node.directory import NodeDirectory, NodeKind
from grid.node.identity import signing_key
from grid.node.introducers import read_introducers
from grid.node.process_limits import MemoryReturn, descriptor_limit, descriptors_in_use, plan_descriptors
from grid.node.storage_node import read_certificates
from grid.node.tubs import listen_as_configured, node_tub
from grid.ports import Runtime
from grid.runtime import ThreadCpuPool
from grid.version import __version__
from grid.wire.connections.connection_limit import ConnectionLimit
from grid.wire.foolscap.negotiation import FoolscapEndpoint
from grid.wire.foolscap.tub import register, share_memory, stop_tub
from grid.wire.status import ConnectionState

if TYPE_CHECKING:
    from grid.gateway.monitoring.statistics import StorageView

VERSION = f"grid/{__version__}"

_DISK_THREADS = 8
"""Disk operations that may wait in parallel, so the shares of one upload are synced together."""

Say = Callable[[str], None]


async def run_node(directory: NodeDirectory, runtime: Runtime, reactor: Any, say: Say) -> None:  # noqa: ANN401
    """Run the node of the directory until cancelled; ConfigError if it cannot start.

    say: called with one line when the node is ready, the same as 1.20's, and with others about its work.
    """
    stores = directory.kind is not NodeKind.INTRODUCER and directory.settings.storage.enabled
    most = MAX_STORAGE_CONNECTIONS if stores else MAX_CONNECTIONS
    plan = plan_descriptors(descriptor_limit(), descriptors_in_use(), most)
    connection_limit = ConnectionLimit(plan.connections)
    if directory.kind is NodeKind.INTRODUCER:
        await _run_introducer(directory, runtime, connection_limit, reactor, say)
    elif stores:
        await _run_storage(directory, runtime, connection_limit, plan.files, reactor, say)
    else:
        await _run_client(directory, runtime, connection_limit, reactor, say)


async def _run_introducer(
    directory: NodeDirectory,
    runtime: Runtime,
    connection_limit: ConnectionLimit,
    reactor: Any,  # noqa: ANN401
    say: Say,
) -> None:
    tub = node_tub(directory)
    try:
        await listen_as_configured(
            tub, directory, reactor, lambda endpoint: FoolscapEndpoint(endpoint, connection_limit)
        )
        register(tub, Introducer(VERSION), directory.private / "introducer.furl")
        say("introducer running")
        await _forever()
    finally:
        await stop_tub(tub, runtime.clock)


async def _run_client(
    directory: NodeDirectory,
    runtime: Runtime,
    connection_limit: ConnectionLimit,
    reactor: Any,  # noqa: ANN401
    say: Say,
) -> None:
    client = Client(directory, runtime, reactor)
    async with AsyncExitStack() as closing:
        closing.push_async_callback(client.close)
        client.start()
        await _serve_web(closing, client, connection_limit, reactor, say)
        notice = encoding_notice(client.encoding.k, client.encoding.n)
        if notice is not None:
            say(f"note: {notice}")
        say("client running")
        await _forever()


async def _run_storage(
    directory: NodeDirectory,
    runtime: Runtime,
    connection_limit: ConnectionLimit,
    open_files: int,
    reactor: Any,  # noqa: ANN401
    say: Say,
) -> None:
    # Only a storage node pays for these imports.
    from grid.node.shared_http import SharedHttp
    from grid.node.storage_node import LocalStorage, identify_node, make_service, server_settings
    from grid.storage.upkeep.housekeeping import Housekeeping
    from grid.wire.budget.server_memory import ServerMemory
    from grid.wire.foolscap.server.server import RemoteStorageServer

    async with AsyncExitStack() as closing:
        tub = node_tub(directory)
        closing.push_async_callback(stop_tub, tub, runtime.clock)
        key = signing_key(directory)
        seed_text, identity = identify_node(directory, key.verifying_key, _node_id(tub))
        io = ThreadCpuPool(reactor, _DISK_THREADS)
        closing.callback(io.stop)
        service = make_service(directory, identity, runtime, io, open_files)
        await service.start()
        closing.push_async_callback(service.stop)
        settings = server_settings(directory)
        housekeeping = Housekeeping(service, settings.expire, runtime.clock)
        closing.push_async_callback(housekeeping.stop)
        # Stopped first, so nothing new arrives while uploads in progress are aborted.
        closing.push_async_callback(stop_tub, tub, runtime.clock)
        memory = ServerMemory(runtime.clock, return_freed_memory)
        share_memory(tub, memory)
        http = SharedHttp(directory, service, memory, connection_limit)
        closing.push_async_callback(http.close)
        hints = await listen_as_configured(tub, directory, reactor, http.share_port)
        await http.listen_in_the_clear(reactor)
        furl = None
        if directory.settings.storage.anonymous:
            furl = register(tub, RemoteStorageServer(service, memory.answers), directory.private / "storage.furl")
        fields = storage_fields(
            nickname=directory.settings.nickname,
            version=VERSION,
            seqnum=directory.next_sequence_number(),
            nonce=runtime.entropy.random_bytes(32),
            furl=None if furl is None else furl.to_string(),
            nurls=() if furl is None else http.open_to(furl),
            plaintext_reads=() if furl is None else http.plain_hints(furl),
            permutation_seed_base32=seed_text,
            certificates=read_certificates(directory),
        )
        say(f'storage node "{directory.settings.nickname}" running, reachable at {", ".join(hints)}')
        say(f"`grid status` shows it as {identity.server_id[:11]}")
        for introducer in _start_introducers(directory, runtime, tub, sign(fields, key), say):
            closing.callback(introducer.close)
        housekeeping.start()
        configured = directory.settings
        if any(port is not None for port in (configured.web_port, configured.s3.port, configured.sftp.port)):
            client = Client(directory, runtime, reactor)
            closing.push_async_callback(client.close)
            await _serve_web(
                closing, client, connection_limit, reactor, say, LocalStorage(service, housekeeping, settings)
            )
        say("client running")
        await _forever()


async def _serve_web(
    closing: AsyncExitStack,
    client: Client,
    connection_limit: ConnectionLimit,
    reactor: Any,  # noqa: ANN401
    say: Say,
    storage: StorageView | None = None,
) -> None:
    """Serve the node's web gateway, if configured, until `closing` closes."""
    settings = client.directory.settings
    if settings.web_port is None:
        if settings.s3.port is not None:
            raise ConfigError(
                f"{client.directory.config_file}: section [s3], key port: the S3 interface runs beside the web gateway; "
                "set web.port under [node], too"
            )
        if settings.sftp.port is not None:
            raise ConfigError(
                f"{client.directory.config_file}: section [sftpd], key enabled: the SFTP interface runs beside the web gateway; "
                "set web.port under [node], too"
            )
        return
    # Only a gateway pays for this import.
    from grid.node.gateway import running_gateway

    listening = await closing.enter_async_context(
        running_gateway(client.directory, client, connection_limit, reactor, settings.web_port, say, storage)
    )
    closing.callback(MemoryReturn(client.runtime.clock).close)
    if settings.s3.port is not None:
        from grid.node.s3_door import running_s3_door

        await closing.enter_async_context(
            running_s3_door(client.directory, listening.gateway, connection_limit, reactor, say)
        )
    if settings.sftp.port is not None:
        from grid.node.sftp_door import running_sftp_door

        await closing.enter_async_context(
            running_sftp_door(client.directory, listening.gateway, connection_limit, reactor, say)
        )
    listening.tell_programs()


def _node_id(tub: Any) -> bytes:  # noqa: ANN401
    """The 20-byte id derived from a Tub's certificate."""
    return base32.decode(str(tub.tubID))


def _start_introducers(
    directory: NodeDirectory,
    runtime: Runtime,
    tub: Any,  # noqa: ANN401
    announcement: SignedAnnouncement,
    say: Say,
) -> list[IntroducerClient]:
    """Publish at every introducer, and report how the first attempt to reach each one ended.

    A node that only stores ignores what they announce.
    """
    started: list[IntroducerClient] = []
    for petname, furl in read_introducers(directory).items():
        settings = IntroducerSettings(furl=furl, petname=petname, nickname=directory.settings.nickname, version=VERSION)

        def settled(petname: str = petname) -> None:
            (found,) = [each for each in started if each.petname == petname]
            if found.status.state is ConnectionState.CONNECTED:
                say(f"introducer {petname} connected")
            elif found.status.state is ConnectionState.WAITING:
                say(f"introducer {petname} not connected: {found.status.detail}; retrying")

        introducer = IntroducerClient(settings, tub, runtime.clock, lambda _: None, settled)
        started.append(introducer)
        introducer.publish(announcement)
        introducer.start()
    return started


def _forever() -> Deferred[None]:
    """A Deferred that never fires; cancelling the waiting task ends it with CancelledError."""
    return Deferred()
