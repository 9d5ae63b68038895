"""Hundreds of useless connections to real processes with few descriptors.

Every kind comes from the honest client's address, takes more connections than there are, and is kept up meanwhile. The honest client
opens a new connection for each attempt and gets an answer within a few of them: on an idle machine within those of one second. A busy
one takes longer to turn the attackers away, so the tests allow more attempts.
"""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from attrs import frozen
from foolscap.api import DeadReferenceError, RemoteException

from grid.caps.parsing import parse_cap
from grid.caps.values import ChkCap
from grid.codec import base32
from grid.limits import MAX_STORAGE_CONNECTIONS
from grid.node.process_limits import raise_descriptor_limit
from grid.wire.foolscap.tub import start_tub, stop_tub
from grid.wire.http.format.authority import authorization
from grid.wire.locators import Furl, parse_furl
from perf.processes.node_directory import NodeSettings, make_node
from perf.processes.node_process import NodeProcess, free_ports, stop_all
from tests.support.hostile_clients import (
    Flood,
    Hostile,
    any_certificate,
    half_a_handshake,
    hostile,
    over_tls,
    plainly,
    switched,
)

DESCRIPTORS = 400
"""Of each process: some 160 connections, of which one address gets 120."""

COUNT = 320
FEW_DESCRIPTORS, FEW_COUNT = 64, 100
NEGOTIATED = 130
"""Each of those costs both sides a certificate's signature."""

ATTEMPTS = 20
PAUSE_S = 0.25
KNOWN_ATTEMPTS = 5
"""How many requests of a client that is connected already may fail: its connection gives way once, and it comes in again."""

MIB = 2**20


def limited(node: NodeProcess, descriptors: int | None) -> NodeProcess:
    """The node with that many descriptors at most; None: with as many as it may have."""
    if descriptors is None:
        return node
    command = " ".join(f"'{word}'" for word in node._command)
    return NodeProcess(node.directory, ["sh", "-c", f"ulimit -n {descriptors}; exec {command}"])


@frozen(kw_only=True)
class Running:
    """An introducer, and a node that stores and has a gateway."""

    introducer: NodeProcess
    node: NodeProcess
    introducer_furl: Furl
    furl: Furl
    introducer_port: int
    port: int
    web_port: int
    cap: str
    count: int
    """Of connections that take more descriptors than it has."""

    @property
    def storage_index(self) -> str:
        """Of the file behind the cap, as text."""
        cap = parse_cap(self.cap)
        assert isinstance(cap, ChkCap)
        return base32.encode(cap.storage_index)

    @property
    def authority(self) -> str:
        return f"Authorization: {authorization(self.furl.swissnum).decode()}\r\n"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("hostile")
    yield from started(folder, DESCRIPTORS)


def started(folder: Path, descriptors: int | None, count: int = COUNT) -> Iterator[Running]:
    introducer_port, port = free_ports(2)
    base = NodeSettings(kind="grid", role="introducer", port=introducer_port)
    introducer = limited(make_node(folder / "introducer", base), descriptors)
    introducer.start()
    nodes = [introducer]
    try:
        introducer_furl = read_furl(introducer, "introducer.furl")
        settings = NodeSettings(
            kind="grid",
            role="storage",
            introducer_furl=introducer_furl.to_string(),
            port=port,
            needed=1,
            happy=1,
            total=1,
            force_foolscap=False,
            gateway=True,
            durability="none",
        )
        node = limited(make_node(folder / "node", settings), descriptors)
        nodes.append(node)
        node.start()
        node.wait_for(lambda: "client running" in node.log, "start")
        furl = read_furl(node, "storage.furl")
        web_port = int((node.directory / "node.url").read_text().strip().strip("/").rpartition(":")[2])
        node.wait_for(lambda: ask(web_port, "GET", "/readyz")[0] == 200, "its own storage server")
        status, cap = ask(web_port, "PUT", "/uri", bytes(8 * MIB))
        assert status == 200
        yield Running(
            introducer=introducer,
            node=node,
            introducer_furl=introducer_furl,
            furl=furl,
            introducer_port=introducer_port,
            port=port,
            web_port=web_port,
            cap=cap.decode(),
            count=count,
        )
    finally:
        stop_all(nodes)


def read_furl(node: NodeProcess, name: str) -> Furl:
    path = node.directory / "private" / name
    node.wait_for(lambda: path.exists() and bool(path.read_text().strip()), name)
    return parse_furl(path.read_text().strip())


def ask(
    port: int,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    *,
    tls: bool = False,
) -> tuple[int, bytes]:
    """One request on a connection of its own; status 0 if the connection came to nothing."""
    made: http.client.HTTPConnection
    if tls:
        made = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=any_certificate())
    else:
        made = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        made.request(method, path, body, headers or {})
        answer = made.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException, ssl.SSLError):
        return 0, b""
    finally:
        made.close()


def post(path: str, *lines: str, length: int = 1000) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{''.join(lines)}Content-Length: {length}\r\n\r\nx".encode()


FIND = f"/storage/v1/immutable/{'a' * 26}/grid-find"

AT_THE_SHARED_PORT: dict[str, Callable[[Running], Hostile]] = {
    "silent": lambda on: hostile(on.count, plainly(on.port)),
    "half a TLS handshake": lambda on: hostile(on.count, half_a_handshake(on.port)),
    "TLS and silence": lambda on: hostile(on.count, over_tls(on.port)),
    "head byte by byte": lambda on: hostile(on.count, over_tls(on.port, b"GET /storage"), b"x"),
    "unauthorized, then silence": lambda on: hostile(on.count, over_tls(on.port, post(FIND))),
    "unauthorized body byte by byte": lambda on: hostile(on.count, over_tls(on.port, post(FIND)), b"x"),
    "unknown path, then silence": lambda on: hostile(on.count, over_tls(on.port, post("/nothing"))),
    "authorized, then silence": lambda on: hostile(on.count, over_tls(on.port, post(FIND, on.authority))),
    "authorized body byte by byte": lambda on: hostile(on.count, over_tls(on.port, post(FIND, on.authority)), b"x"),
    "answer never read": lambda on: hostile(
        on.count,
        over_tls(
            on.port,
            f"GET /storage/v1/immutable/{on.storage_index}/0 HTTP/1.1\r\nHost: x\r\n{on.authority}\r\n".encode(),
            unread=True,
        ),
    ),
    "idle after an answer": lambda on: hostile(
        on.count, over_tls(on.port, f"GET /storage/v1/version HTTP/1.1\r\nHost: x\r\n{on.authority}\r\n".encode())
    ),
    "negotiation begun": lambda on: hostile(on.count, plainly(on.port, b"GET /id/x"), b"x"),
    "negotiation without TLS": lambda on: hostile(on.count, switched(on.port, on.furl.tub_id)),
    "negotiation half done": lambda on: hostile(
        NEGOTIATED, switched(on.port, on.furl.tub_id, tls=True, hello=b"banana"), b"x"
    ),
}

AT_THE_GATEWAY: dict[str, Callable[[Running], Hostile]] = {
    "silent": lambda on: hostile(on.count, plainly(on.web_port)),
    "head byte by byte": lambda on: hostile(on.count, plainly(on.web_port, b"GET /he"), b"x"),
    "refused, then silence": lambda on: hostile(on.count, plainly(on.web_port, post("/nothing"))),
    "refused body byte by byte": lambda on: hostile(on.count, plainly(on.web_port, post("/nothing")), b"x"),
    "body, then silence": lambda on: hostile(on.count, plainly(on.web_port, post("/uri", host(on)))),
    "body byte by byte": lambda on: hostile(on.count, plainly(on.web_port, post("/uri", host(on))), b"x"),
    "answer never read": lambda on: hostile(
        on.count, plainly(on.web_port, f"GET /uri/{on.cap} HTTP/1.1\r\n{host(on)}\r\n".encode(), unread=True)
    ),
    "idle after an answer": lambda on: hostile(
        on.count, plainly(on.web_port, f"GET /healthz HTTP/1.1\r\n{host(on)}\r\n".encode())
    ),
}


def host(on: Running) -> str:
    return f"Host: 127.0.0.1:{on.web_port}\r\n"


def over_https(on: Running) -> bool:
    """Whether a new client of the storage server is answered."""
    headers = {"Authorization": authorization(on.furl.swissnum).decode()}
    return ask(on.port, "GET", "/storage/v1/version", headers=headers, tls=True)[0] == 200


def through_gateway(on: Running) -> bool:
    """Whether a new client of the gateway is answered."""
    return ask(on.web_port, "GET", "/healthz")[0] == 200


async def over_foolscap(furl: Furl) -> bool:
    """Whether a new client over Foolscap gets the object."""
    tub = start_tub()
    try:
        await tub.getReference(furl.to_string())
    except Exception:
        return False
    finally:
        await stop_tub(tub)
    return True


def is_served(honest: Callable[[], bool], attackers: Hostile) -> bool:
    """Whether one of the attempts succeeds, the attackers going on between them."""
    for _ in range(ATTEMPTS):
        attackers.poke()
        if honest():
            return True
        time.sleep(PAUSE_S)
    return False


async def is_served_over_foolscap(furl: Furl, attackers: Hostile) -> bool:
    for _ in range(ATTEMPTS):
        attackers.poke()
        if await over_foolscap(furl):
            return True
        time.sleep(PAUSE_S)
    return False


@pytest.mark.parametrize("kind", AT_THE_SHARED_PORT)
async def test_clients_of_a_storage_node_are_served(running: Running, kind: str) -> None:
    attackers = AT_THE_SHARED_PORT[kind](running)
    try:
        assert len(attackers.sockets) > 100
        assert is_served(lambda: over_https(running), attackers)
        assert await is_served_over_foolscap(running.furl, attackers)
        assert is_served(lambda: through_gateway(running), attackers)
    finally:
        attackers.close()
    running.node.expect_running()


AT_THE_INTRODUCER: dict[str, Callable[[Running], Hostile]] = {
    "silent": lambda on: hostile(on.count, plainly(on.introducer_port)),
    "negotiation begun": lambda on: hostile(on.count, plainly(on.introducer_port, b"GET /id/x"), b"x"),
    "negotiation half done": lambda on: hostile(
        NEGOTIATED, switched(on.introducer_port, on.introducer_furl.tub_id, tls=True, hello=b"banana"), b"x"
    ),
}


@pytest.mark.parametrize("kind", AT_THE_INTRODUCER)
async def test_clients_of_an_introducer_are_served(running: Running, kind: str) -> None:
    attackers = AT_THE_INTRODUCER[kind](running)
    try:
        assert len(attackers.sockets) > 100
        assert await is_served_over_foolscap(running.introducer_furl, attackers)
    finally:
        attackers.close()
    running.introducer.expect_running()


async def test_connections_that_negotiate_and_name_nothing_give_way(running: Running) -> None:
    tubs = [start_tub() for _ in range(NEGOTIATED)]
    wrong = Furl(tub_id=running.furl.tub_id, hints=running.furl.hints, swissnum="wrong").to_string()
    try:
        for tub in tubs:
            # A client that has lost its place meanwhile gets no notice.
            with suppress(RemoteException, DeadReferenceError):
                await tub.getReference(wrong)
        assert sum(len(tub.brokers) for tub in tubs) > 50
        assert await is_served_over_foolscap(running.furl, Hostile())
        assert is_served(lambda: over_https(running), Hostile())
    finally:
        for tub in tubs:
            await stop_tub(tub)


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The same with as many descriptors as this machine allows."""
    yield from started(tmp_path_factory.mktemp("rich"), None)


@pytest.mark.parametrize("port", ["port", "web_port"])
async def test_clients_are_served_while_silent_connections_keep_coming(rich: Running, port: str) -> None:
    kept = min(2 * MAX_STORAGE_CONNECTIONS, raise_descriptor_limit() // 2)
    running, flood = rich, Flood(plainly(getattr(rich, port)), kept)
    try:
        while flood.count < kept:
            time.sleep(0.01)
        assert is_served(lambda: over_https(running), Hostile())
        assert is_served(lambda: through_gateway(running), Hostile())
        assert await is_served_over_foolscap(running.furl, Hostile())
    finally:
        flood.close()


@pytest.mark.parametrize("kind", AT_THE_GATEWAY)
async def test_clients_of_a_gateway_are_served(running: Running, kind: str) -> None:
    attackers = AT_THE_GATEWAY[kind](running)
    try:
        assert len(attackers.sockets) > 100
        assert is_served(lambda: through_gateway(running), attackers)
        assert is_served(lambda: over_https(running), attackers)
    finally:
        attackers.close()
    running.node.expect_running()


@pytest.fixture(scope="module")
def poor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The same with few descriptors each."""
    yield from started(tmp_path_factory.mktemp("poor"), FEW_DESCRIPTORS, FEW_COUNT)


POOR = {
    name: AT_THE_SHARED_PORT[name]
    for name in ("silent", "TLS and silence", "authorized, then silence", "answer never read")
}


@pytest.mark.parametrize("kind", POOR)
def test_share_files_are_open_to_known_clients_when_descriptors_are_few(poor: Running, kind: str) -> None:
    """Every read of an already connected client is answered, and new clients get in."""
    headers = {"Authorization": authorization(poor.furl.swissnum).decode(), "Range": "bytes=0-99"}
    path = f"/storage/v1/immutable/{poor.storage_index}/0"
    known = http.client.HTTPSConnection("127.0.0.1", poor.port, timeout=10, context=any_certificate())
    attackers = Hostile()
    try:
        statuses = []
        for step in range(20):
            if step == 5:
                attackers = POOR[kind](poor)
            try:
                known.request("GET", path, headers=headers)
                answer = known.getresponse()
                answer.read()
                statuses.append(answer.status)
            except (OSError, http.client.HTTPException):
                known.close()  # It was idle, and gave way: the next attempt makes a new connection.
                statuses.append(0)
                time.sleep(PAUSE_S)
        assert set(statuses) <= {206, 0}
        assert statuses[-1] == 206
        assert statuses.count(0) <= KNOWN_ATTEMPTS
        assert is_served(lambda: ask(poor.web_port, "GET", f"/uri/{poor.cap}")[1] == bytes(8 * MIB), attackers)
    finally:
        known.close()
        attackers.close()
    assert "Too many open files" not in poor.node.log
