"""Memory of a storage node whose clients never read their answers: under 200 MiB, whatever they request.

A real node, real sockets, and every kind of request of both protocols.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import frozen
from foolscap.api import Referenceable
from foolscap.broker import Broker
from foolscap.remoteinterface import RemoteInterfaceClass
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from grid.limits import MAX_STORAGE_CONNECTIONS, READ_CALL_BYTES
from grid.ports import ShareNumber, ShareWrite, TestWrite
from grid.runtime import ReactorClock
from grid.storage.files.disk import RealDisk
from grid.storage.files.paths import index_name, share_path
from grid.storage.settings import StorageSettings
from grid.wire.foolscap import schema
from grid.wire.foolscap.tub import start_tub, stop_tub
from grid.wire.http.format.authority import authorization, pack_secrets, plain_authorization
from grid.wire.http.format.routes import READS, Endpoint
from grid.wire.locators import Furl, parse_furl
from perf.processes.node_directory import NodeSettings, make_node
from perf.processes.node_process import NodeProcess, free_ports
from tests.node.unread_requests import (
    FOOLSCAP,
    FREE,
    HTTP,
    INDEX,
    SECRETS,
    SHARE_COUNT,
    SHARE_SIZE,
    SLOT,
    HttpRequest,
    References,
)
from tests.support.storage import ServiceScene

MOST_RESIDENT = 200 * 2**20
CONNECTIONS = 12
IDLE_CONNECTIONS = 64
IDLE_BYTES = 64 * 2**10
"""What an idle connection over Foolscap costs at most (decision 0350)."""

LARGE = ShareNumber(255)
"""A share that is longer than one answer."""


def test_tables_of_unread_requests_have_every_kind_that_a_node_offers() -> None:
    assert set(HTTP) == set(Endpoint)
    interfaces = [each for each in vars(schema).values() if isinstance(each, RemoteInterfaceClass)]
    offered = {
        (each.__name__, str(method)) for each in interfaces for method in each.names() if method != "__remote_name__"
    }
    assert set(FOOLSCAP) == offered


def _fill(storage: Path) -> None:
    """Shares 0 to 249 of INDEX and SLOT of one size, all one file on the disk, and one that is longer."""
    storage.mkdir()
    scene = ServiceScene(RealDisk(str(storage)), StorageSettings(durability="none"))
    first = ShareNumber(0)
    for number, size in ((first, SHARE_SIZE), (LARGE, 3 * READ_CALL_BYTES)):
        allocation = scene.run(scene.service.allocate(INDEX, SECRETS.lease, frozenset((number,)), size))
        for offset in range(0, size, 2**20):
            scene.run(allocation.upload.write([ShareWrite(number, offset, [os.urandom(2**20)])]))
        scene.run(allocation.upload.close([number]))
        write = TestWrite(tests=[], writes=[(size - 1, b"x")], new_length=None)
        scene.run(scene.service.test_and_write(SLOT, SECRETS, {number: write}))
    for index in (INDEX, SLOT):
        name = index_name(index)
        for copy in map(ShareNumber, range(1, SHARE_COUNT)):
            os.link(storage / share_path(name, first), storage / share_path(name, copy))


@frozen(kw_only=True)
class Node:
    """A storage node that runs."""

    process: NodeProcess
    furl: Furl
    port: int
    plain_port: int

    def forget_peak(self) -> None:
        """Have the most that was resident counted from now on."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    @property
    def peak(self) -> int:
        """The most bytes that were resident."""
        return self._status("VmHWM:")

    @property
    def resident(self) -> int:
        """Bytes that are resident."""
        return self._status("VmRSS:")

    def _status(self, name: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith(name)]
        return int(line.split()[1]) * 1024

    def _used(self) -> str:
        return " ".join(Path(f"/proc/{self.process.pid}/stat").read_text().split()[13:15])

    async def quiet(self) -> None:
        """Return when the process has done nothing for a while."""
        clock = ReactorClock(reactor)
        used, still = self._used(), 0
        while still < 4:
            await clock.sleep(0.05)
            now = self._used()
            still = still + 1 if now == used else 0
            used = now


@asynccontextmanager
async def running_node(tmp_path: Path) -> AsyncIterator[Node]:
    """A storage node with shares to ask for, without an introducer."""
    port, plain_port = free_ports(2)
    directory = tmp_path / "node"
    settings = NodeSettings(
        kind="grid", role="storage", port=port, force_foolscap=False, plaintext_reads=True, durability="none"
    )
    process = make_node(directory, settings)
    configuration = directory / "grid.cfg"
    configuration.write_text(
        configuration.read_text().replace("plaintext_reads = tcp:0", f"plaintext_reads = tcp:{plain_port}")
    )
    _fill(directory / "storage")
    process.start()
    try:
        process.wait_for(lambda: "client running" in process.log, "ready")
        furl = parse_furl((directory / "private" / "storage.furl").read_text().strip())
        yield Node(process=process, furl=furl, port=port, plain_port=plain_port)
        process.expect_running()
        assert "Traceback" not in process.log
    finally:
        process.stop()


def pack_request(request: HttpRequest, token: bytes, length: int | None = None) -> bytes:
    """The request as bytes. length: the Content-Length of its head; None: the true one."""
    head = [
        f"{request.method} ".encode() + request.path + b" HTTP/1.1",
        b"Host: node",
        b"Authorization: " + token,
        b"Content-Length: %d" % (len(request.body) if length is None else length),
        *[name + b": " + value for name, value in request.headers],
        *[name + b": " + value for name, value in pack_secrets(request.secrets)],
    ]
    return b"\r\n".join(head) + b"\r\n\r\n" + request.body


def ask_and_never_read(closing: ExitStack, port: int, message: bytes, *, tls: bool = True) -> socket.socket:
    """One connection that has sent the message, open until `closing` ends."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect(("127.0.0.1", port))
    plain.settimeout(20)
    if not tls:
        closing.callback(plain.close)
        plain.sendall(message)
        return plain
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    wrapped = context.wrap_socket(plain)
    closing.callback(wrapped.close)
    wrapped.sendall(message)
    return wrapped


async def _ask_over_http(node: Node, requests: Sequence[HttpRequest], *, plain: bool) -> None:
    """Each of the requests, of some connections each."""
    swissnum = node.furl.swissnum
    token = plain_authorization(swissnum) if plain else authorization(swissnum)
    with ExitStack() as closing:
        for request in requests:
            message = pack_request(request, token)
            for _ in range(CONNECTIONS):
                ask_and_never_read(closing, node.plain_port if plain else node.port, message, tls=not plain)
        await node.quiet()


@asynccontextmanager
async def references(node: Node) -> AsyncIterator[References]:
    """Remote objects of the node, over a connection of their own."""
    tub = start_tub()
    tub.brokerClass = Broker
    try:
        server = await tub.getReference(node.furl.to_string())
        lease = SECRETS.lease
        readers = await server.callRemote("get_buckets", INDEX)
        ask = [FREE, lease.renew, lease.cancel]
        _, writers = await server.callRemote("allocate_buckets", *ask, {253}, 2**20, Referenceable())
        _, _, upload = await server.callRemote("grid_allocate", *ask, {254}, 2**20, Referenceable())
        yield References(server=server, reader=readers[LARGE], writer=writers.get(253, upload), upload=upload)
        server.tracker.broker.transport.abortConnection()
    finally:
        await stop_tub(tub)


async def _ask_over_foolscap(node: Node, kind: tuple[str, str]) -> None:
    """Calls of that kind, many on one connection."""
    async with references(node) as at:
        sent: list[Deferred[Any]] = []
        transport = at.server.tracker.broker.transport
        transport.pauseProducing()
        for reference, method, arguments in FOOLSCAP[kind](at):
            sent += [reference.callRemote(method, *arguments, _useSchema=False) for _ in range(CONNECTIONS)]
        for each in sent:
            each.addErrback(lambda _: None)
        await node.quiet()


async def test_node_when_nobody_reads_its_answers_stays_below_200_mib(tmp_path: Path) -> None:
    peaks: dict[str, int] = {}
    async with running_node(tmp_path) as node:
        for endpoint, requests in HTTP.items():
            for plain in (False, True) if endpoint in READS else (False,):
                node.forget_peak()
                await _ask_over_http(node, requests, plain=plain)
                peaks[f"{endpoint.name}{' in the clear' if plain else ''}"] = node.peak
        for kind in FOOLSCAP:
            node.forget_peak()
            await _ask_over_foolscap(node, kind)
            peaks[".".join(kind)] = node.peak
    assert {name: peak >> 20 for name, peak in peaks.items() if peak >= MOST_RESIDENT} == {}


async def test_node_with_all_idle_foolscap_connections_that_it_accepts_stays_below_200_mib(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        tubs: list[Any] = []
        try:
            sizes: list[int] = []
            for count in (8, IDLE_CONNECTIONS):
                while len(tubs) < count:
                    tubs.append(start_tub())
                    await tubs[-1].getReference(node.furl.to_string())
                await node.quiet()
                sizes.append(node.resident)
        finally:
            for tub in tubs:
                await stop_tub(tub)
    each = (sizes[1] - sizes[0]) / (IDLE_CONNECTIONS - 8)
    assert each < IDLE_BYTES
    assert sizes[1] + each * (MAX_STORAGE_CONNECTIONS - IDLE_CONNECTIONS) < MOST_RESIDENT
