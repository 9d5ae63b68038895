"""A gateway that follows a script: it records requests, and answers with whatever bytes a test wants."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from attrs import define, field, frozen
from twisted.internet import reactor as global_reactor
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.python.failure import Failure

from grid.cli.webapi.address import parse_address
from grid.cli.webapi.http import GatewayClient
from grid.cli.webapi.store import GatewayStore
from grid.runtime import ReactorClock, RealRuntime, SystemEntropy, ThreadCpuPool

reactor: Any = global_reactor


@cache
def _threads() -> ThreadCpuPool:
    pool = ThreadCpuPool(reactor, 2)
    reactor.addSystemEventTrigger("before", "shutdown", pool.stop)
    return pool


@frozen
class Asked:
    """One request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@frozen
class Reply:
    """Bytes to answer with, and whether the connection is closed behind them."""

    data: bytes
    closes: bool = False


def reply(
    body: bytes | str | object,
    status: str = "200 OK",
    *,
    length: int | None = None,
    closes: bool = False,
    **headers: str,
) -> Reply:
    """An answer; a body that is not text is sent as JSON. length: the Content-Length, if not the true one."""
    raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    fields = {"Content-Length": str(len(raw) if length is None else length)}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "\r\n".join([f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in fields.items()), "", ""])
    return Reply(head.encode() + raw, closes)


Script = Callable[[Asked], Reply | None]
"""What is answered to a request; None: nothing, ever."""


@define(eq=False)
class ScriptedGateway:
    """A running one. asked: every request, in order."""

    script: Script
    asked: list[Asked] = field(factory=list)
    open: list[Connection] = field(factory=list)
    port: int = 0

    @property
    def targets(self) -> list[str]:
        """What was asked for, with methods."""
        return [f"{asked.method} {asked.target}" for asked in self.asked]


class Connection(Protocol):
    """One connection, request after request."""

    transport: Any

    def __init__(self, gateway: ScriptedGateway) -> None:
        self._gateway = gateway
        self._received = b""
        gateway.open.append(self)

    def connectionLost(self, reason: Failure = Failure(Exception())) -> None:  # noqa: B008
        self._gateway.open.remove(self)

    def dataReceived(self, data: bytes) -> None:
        self._received += data
        while (asked := self._next()) is not None:
            self._gateway.asked.append(asked)
            answer = self._gateway.script(asked)
            if answer is not None:
                self.transport.write(answer.data)
                if answer.closes:
                    self.transport.loseConnection()

    def _next(self) -> Asked | None:
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if not end:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = int(headers.get("content-length", "0"))
        if len(rest) < size:
            return None
        self._received = rest[size:]
        return Asked(method, target, headers, rest[:size])


class ScriptFactory(Factory):
    """Makes connections of a gateway."""

    noisy = False

    def __init__(self, gateway: ScriptedGateway) -> None:
        self._gateway = gateway

    def buildProtocol(self, addr: object) -> Connection:
        return Connection(self._gateway)


@asynccontextmanager
async def scripted(script: Script | Sequence[Reply]) -> AsyncIterator[tuple[ScriptedGateway, GatewayStore]]:
    """The gateway and a store behind it. script: or the answers, one for each request."""
    if not callable(script):
        answers = iter(script)
        script = lambda asked: next(answers)  # noqa: E731
    gateway = ScriptedGateway(script)
    listening: Any = await TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(ScriptFactory(gateway))
    gateway.port = listening.getHost().port
    runtime = RealRuntime(clock=ReactorClock(reactor), cpu=_threads(), entropy=SystemEntropy())
    client = GatewayClient(parse_address(f"http://127.0.0.1:{gateway.port}", "a test"), runtime, reactor)
    try:
        yield gateway, GatewayStore(client=client)
    finally:
        await client.close()
        for connection in list(gateway.open):
            connection.transport.abortConnection()
        await listening.stopListening()
