"""The shared port, the limits of connections, and the cost of unread answers and trickling requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

import pytest
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP4ServerEndpoint
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

from grid.errors import PeerGoneError
from grid.ports import Buffer, Range, ServerVersion, ShareNumber, StorageIndex
from grid.runtime import ReactorClock
from grid.wire.budget.answer_budget import AnswerBudget
from grid.wire.budget.server_memory import ServerMemory
from grid.wire.connections.connection_limit import ConnectionLimit
from grid.wire.foolscap.client.server import FoolscapServer
from grid.wire.foolscap.server.server import RemoteStorageServer
from grid.wire.foolscap.tub import listen, set_location, start_tub, stop_tub
from grid.wire.http.client.pool import Address, Pool
from grid.wire.http.client.server import HttpServer
from grid.wire.http.format.authority import authorization, plain_authorization
from grid.wire.http.format.messages import pack_head
from grid.wire.http.format.tls import TlsLayer, client_context, spki_hash_of_pem
from grid.wire.http.server import channel, client_time, listeners
from grid.wire.http.server.listeners import HttpOffer, SharedEndpoint
from grid.wire.locators import Nurl, parse_furl
from tests.contract.storage_server import plain, put
from tests.wire.http.rig import (
    SWISSNUM,
    Rig,
    ask,
    certificate,
    make_identity,
    make_runtime,
    make_service,
    running,
    tls_context,
)

INDEX = StorageIndex(bytes(16))
ONE = ShareNumber(1)


class Wire(Protocol):
    """A connection made by hand."""

    transport: Any

    def __init__(self) -> None:
        self.received = b""
        self.lost: Deferred[None] = Deferred()
        self._awaited: tuple[Callable[[bytes], bool], Deferred[bytes]] | None = None

    def dataReceived(self, data: bytes) -> None:
        self.received += data
        if self._awaited is not None and self._awaited[0](self.received):
            awaited, self._awaited = self._awaited[1], None
            awaited.callback(self.received)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.lost.callback(None)

    async def until(self, condition: Callable[[bytes], bool]) -> bytes:
        """What was received, once it fulfils the condition."""
        if condition(self.received):
            return self.received
        self._awaited = (condition, Deferred())
        return await self._awaited[1]


@asynccontextmanager
async def wired(port: int, *, tls: bool = False) -> AsyncIterator[Wire]:
    """A connection to the port; it is closed at the end."""
    wire = Wire()

    class Once(Factory):
        def buildProtocol(self, addr: Any) -> Any:
            return TlsLayer(client_context(), wire, server_side=False) if tls else wire

    await TCP4ClientEndpoint(reactor, "127.0.0.1", port).connect(Once())
    try:
        yield wire
    finally:
        wire.transport.abortConnection()
        if not wire.lost.called:
            await wire.lost


def request(target: str, method: str = "GET", *headers: tuple[str, str], plainly: bool = False) -> bytes:
    value = plain_authorization(SWISSNUM) if plainly else authorization(SWISSNUM)
    pairs = [(b"Host", b"x"), (b"Authorization", value)]
    pairs += [(name.encode(), value.encode()) for name, value in headers]
    return pack_head(f"{method} /storage/v1/{target} HTTP/1.1".encode(), pairs)


async def test_one_port_when_asked_by_either_protocol_serves_both(tmp_path: Any) -> None:
    runtime, service = make_runtime(), await make_service()
    offer = HttpOffer(service, ServerMemory(runtime.clock))
    tub, client_tub = start_tub(certificate()), start_tub()
    pool = Pool(reactor, runtime.clock)
    try:
        endpoint = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
        port = await listen(
            tub, SharedEndpoint(endpoint, tls_context(), offer.connections, runtime.clock, ConnectionLimit())
        )
        set_location(tub, (f"tcp:127.0.0.1:{port}",))
        furl = parse_furl(tub.registerReference(RemoteStorageServer(service, AnswerBudget(ReactorClock(reactor)))))
        nurl = Nurl(spki_hash=spki_hash_of_pem(certificate()), host="127.0.0.1", port=port, swissnum=furl.swissnum)
        http = HttpServer(make_identity(), [nurl], pool, runtime)
        with pytest.raises(Exception, match="401"):
            await http.connect()
        offer.open_to(furl.swissnum)
        http = HttpServer(make_identity(), [nurl], pool, runtime)
        foolscap = FoolscapServer(make_identity(), furl, client_tub, runtime.clock)
        await put(http, INDEX, {1: b"by HTTP"})
        assert plain(await foolscap.find_shares(INDEX, [(0, 99)])) == {1: [b"by HTTP"]}
        foolscap.close()
        http.close()
    finally:
        offer.close()
        await stop_tub(client_tub)
        await stop_tub(tub)


async def test_first_bytes_when_they_come_one_by_one_are_waited_for() -> None:
    async with running(await make_service()) as rig, wired(rig.port) as wire:
        for byte in b"GET /id":
            wire.transport.write(bytes([byte]))
            await deferLater(reactor, 0.002)
        assert not wire.lost.called
        wire.transport.write(b"/")  # It is Foolscap's from here on, which this test has none of.
        await wire.lost


async def test_first_bytes_when_they_never_come_end_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "SNIFF_DEADLINE_S", 0.05)
    async with running(await make_service()) as rig, wired(rig.port) as wire:
        wire.transport.write(b"GET /i")
        await wire.lost


@pytest.mark.parametrize("start", [b"", b"GET /storage/v1/version HTTP/1.1\r\nX: "])
async def test_head_when_it_trickles_ends_the_connection(monkeypatch: pytest.MonkeyPatch, start: bytes) -> None:
    monkeypatch.setattr(channel, "HTTP_HEAD_DEADLINE_S", 0.1)
    monkeypatch.setattr(client_time, "TICK_S", 0.02)
    async with running(await make_service()) as rig, wired(rig.port, tls=True) as wire:
        wire.transport.write(start)
        while not wire.lost.called:
            wire.transport.write(b"x" if start else b"")
            await deferLater(reactor, 0.01)


async def test_tls_handshake_when_it_never_ends_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "HTTP_HEAD_DEADLINE_S", 0.1)
    monkeypatch.setattr(client_time, "TICK_S", 0.02)
    async with running(await make_service()) as rig, wired(rig.port) as wire:
        wire.transport.write(b"\x16\x03\x01\x02\x00\x01\x00\x01")
        await wire.lost


async def test_body_when_nobody_wants_it_gets_no_more_time_by_trickling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "HTTP_HEAD_DEADLINE_S", 0.1)
    monkeypatch.setattr(client_time, "TICK_S", 0.02)
    async with running(await make_service()) as rig, wired(rig.port, tls=True) as wire:
        wire.transport.write(request("nothing", "POST", ("Content-Length", "100000")))
        assert b" 404 " in await wire.until(lambda data: b"\r\n\r\n" in data)
        while not wire.lost.called:
            wire.transport.write(b"x")
            await deferLater(reactor, 0.01)


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n\r\n\r\n",
        b"GET /storage/v1/version HTTP/1.0\r\n\r\n",
        b"GET /storage/v1/version HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /storage/v1/version HTTP/1.1\r\n folded\r\n\r\n",
        b"\xff" * 100 + b"\r\n\r\n",
        b"x" * 100_000,
    ],
)
async def test_request_when_invalid_is_refused_and_ends_the_connection(sent: bytes) -> None:
    async with running(await make_service()) as rig, wired(rig.port, tls=True) as wire:
        wire.transport.write(sent)
        await wire.lost
        assert wire.received.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))


async def test_body_when_chunked_wrongly_is_refused_and_ends_the_connection() -> None:
    async with running(await make_service()) as rig, wired(rig.port, tls=True) as wire:
        path = "immutable/aaaaaaaaaaaaaaaaaaaaaaaaaa/grid-read"
        wire.transport.write(request(path, "POST", ("Transfer-Encoding", "chunked")) + b"5\r\nabcdefgh\r\n")
        await wire.lost
        assert wire.received.startswith(b"HTTP/1.1 400 ")


async def test_body_when_chunked_and_expected_to_continue_is_read() -> None:
    service = await make_service()
    await put(service, INDEX, {1: b"0123456789"})
    async with running(service) as rig, wired(rig.port, tls=True) as wire:
        path = "immutable/aaaaaaaaaaaaaaaaaaaaaaaaaa/grid-read"
        wire.transport.write(
            request(path, "POST", ("Transfer-Encoding", "chunked"), ("Expect", "100-continue"), ("Connection", "close"))
        )
        await wire.until(lambda data: data == b"HTTP/1.1 100 Continue\r\n\r\n")
        wire.transport.write(b"5\r\n\1\0\0\0\0\r\n8\r\n\0\0\0\1\0\0\0\3\r\n0\r\n\r\n")
        await wire.lost
        assert b"123" in wire.received


async def test_requests_when_pipelined_are_answered_in_turn() -> None:
    async with running(await make_service()) as rig, wired(rig.port, tls=True) as wire:
        wire.transport.write(request("version") * 300 + request("nothing"))
        answers = await wire.until(lambda data: b" 404 " in data)
        assert answers.count(b"HTTP/1.1 200 OK") == 300


async def test_connections_when_there_are_too_many_take_the_place_of_the_longest_idle() -> None:
    async with running(await make_service()) as rig:
        rig.offer.connections._connection_limit = ConnectionLimit(4)  # Of which one address gets three.
        wires = []
        async with AsyncExitStack() as closing:
            for _ in range(5):
                wires.append(await closing.enter_async_context(wired(rig.port, tls=True)))
                wires[-1].transport.write(request("version"))
                await wires[-1].until(lambda data: b"200 OK" in data)
            await wires[0].lost
            await wires[1].lost
            assert len(rig.offer.connections) == 3
            assert not any(wire.lost.called for wire in wires[2:])


class Endless:
    """A server with one endless share, and a count of the bytes read from it."""

    def __init__(self) -> None:
        self.identity = make_identity()
        self.read_size = 0
        self.largest_call = 0

    async def get_version(self) -> ServerVersion:
        return ServerVersion(
            application="endless",
            maximum_immutable_share_size=0,
            maximum_mutable_share_size=0,
            available_space=0,
        )

    async def find_shares(self, index: StorageIndex, ranges: Sequence[Range] = ()) -> Mapping[ShareNumber, Any]:
        return {ONE: [bytes(length) for _, length in ranges]}

    async def read_shares(
        self, index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        size = sum(length for ranges in wants.values() for _, length in ranges)
        self.read_size += size
        self.largest_call = max(self.largest_call, size)
        return {number: [bytes(length) for _, length in ranges] for number, ranges in wants.items()}


SI = "a" * 26


@pytest.mark.parametrize("tls", [True, False])
@pytest.mark.parametrize("range_header", [None, "bytes=0-1099511627775"])
async def test_answers_when_nobody_reads_them_stop_being_made(tls: bool, range_header: str | None) -> None:
    """Forty clients that never read: the server's memory is bounded, however long the share is."""
    server: Any = Endless()
    async with running(server) as rig, AsyncExitStack() as closing:
        headers = [("Range", range_header)] if range_header else []
        for _ in range(40):
            wire = await closing.enter_async_context(wired(rig.port if tls else rig.plain_port, tls=tls))
            wire.transport.write(request("nothing", plainly=not tls))
            await wire.until(lambda data: b" 404 " in data)
            wire.transport.pauseProducing()
            wire.transport.write(request(f"immutable/{SI}/1", "GET", *headers, plainly=not tls))
        before = 0
        while server.read_size != before or server.read_size < 40 * 2**16:
            before = server.read_size
            await deferLater(reactor, 0.3)
        # The kernel's buffers of a connection take up to some 6 MB; beside them there is one piece for each.
        assert server.read_size < 40 * 8 * 2**20
        assert server.largest_call <= 2**20


async def test_requests_when_pipelined_and_never_read_are_not_all_answered() -> None:
    server: Any = Endless()
    async with running(server) as rig, wired(rig.port, tls=True) as wire:
        wire.transport.write(request("nothing"))
        await wire.until(lambda data: b" 404 " in data)
        wire.transport.pauseProducing()
        wire.transport.write(request(f"immutable/{SI}/1", "GET", ("Range", "bytes=0-1048575")) * 100)
        before = 0
        while server.read_size != before or not server.read_size:
            before = server.read_size
            await deferLater(reactor, 0.3)
        assert server.read_size < 16 * 2**20


async def test_batched_read_when_large_is_read_from_the_store_in_pieces() -> None:
    server: Any = Endless()
    async with running(server) as rig:
        found = await rig.client.read_shares(INDEX, {ONE: [(0, 1_500_000), (5, 7), (2**33, 3_000_000)]})
        assert [len(piece) for piece in found[ONE]] == [1_500_000, 7, 3_000_000]
        assert server.largest_call <= 2**20


async def test_version_says_whether_the_server_is_read_only() -> None:
    for is_read_only in (False, True):
        async with running(await make_service(readonly=is_read_only)) as rig:
            assert (await rig.client.get_version()).is_read_only is is_read_only
    async with running(cast(Any, Endless())) as rig:
        assert (await rig.client.get_version()).is_read_only is None


async def test_server_when_its_key_is_not_the_one_in_the_nurl_is_not_used() -> None:
    async with running(await make_service()) as rig:
        wrong = Nurl(spki_hash="A" * 43, host="127.0.0.1", port=rig.port, swissnum=SWISSNUM)
        client = HttpServer(make_identity(), [wrong], rig.pool, make_runtime())
        with pytest.raises(PeerGoneError, match="key"):
            await client.connect()
        with pytest.raises(PeerGoneError, match="next attempt"):
            await client.get_version()


async def test_addresses_when_some_do_not_answer_leave_those_that_do() -> None:
    async with running(await make_service()) as rig:
        dead = Nurl(spki_hash=rig.nurl.spki_hash, host="127.0.0.1", port=1, swissnum=SWISSNUM)
        client = HttpServer(make_identity(), [dead, rig.nurl, dead], rig.pool, make_runtime())
        assert (await client.get_version()).batched_reads


async def test_plain_reads_when_the_plain_port_is_dead_or_refuses_go_the_encrypted_way() -> None:
    service = await make_service()
    await put(service, INDEX, {1: b"0123456789"})
    async with running(service) as rig:
        for port in (1, rig.port):
            client = HttpServer(make_identity(), [rig.nurl], rig.pool, make_runtime(), ("127.0.0.1", port))
            assert plain(await client.find_shares(INDEX, [(0, 99)])) == {1: [b"0123456789"]}


async def test_plain_reads_when_wanted_do_not_touch_the_encrypted_connections() -> None:
    service = await make_service()
    await put(service, INDEX, {1: b"0123456789"})
    async with running(service, plain=True) as rig:
        assert plain(await rig.client.find_shares(INDEX, [(0, 99)])) == {1: [b"0123456789"]}
        assert len(rig.offer.plain_connections) == 1
        await rig.client.get_version()


async def test_secrets_when_things_are_shown_do_not_appear() -> None:
    async with running(await make_service(), plain=True) as rig:
        shown = repr(rig) + repr(rig.client) + repr(rig.nurl) + repr(Address("h", 1, None))
        assert SWISSNUM not in shown
        assert isinstance(rig, Rig)
        assert (await ask(rig, "GET", "version")).status == 200
