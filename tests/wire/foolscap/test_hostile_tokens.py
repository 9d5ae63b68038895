"""Servers that violate Foolscap's own protocol during a call: the call ends, memory stays bounded, others serve the file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from foolscap.api import Referenceable
from foolscap.banana import int2b128
from foolscap.tokens import (
    ABORT,
    CLOSE,
    ERROR,
    FLOAT,
    INT,
    LIST,
    LONGINT,
    LONGNEG,
    NEG,
    OPEN,
    PING,
    STRING,
    VOCAB,
)
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from grid.engine.grid import Encoding
from grid.errors import PeerError
from grid.mutable.create import create_mutable
from grid.mutable.node import MutableFile
from grid.mutable.share.geometry import FormatName
from grid.ports import ServerVersion
from grid.runtime import ReactorClock, RealRuntime, SystemEntropy, ThreadCpuPool
from grid.wire.foolscap import broker
from grid.wire.foolscap.client.server import FoolscapServer
from grid.wire.foolscap.tub import start_tub, stop_tub
from tests.support.grids import grid_of
from tests.support.mutable_key import known_key
from tests.support.scripted_slots import SlotServer
from tests.wire.foolscap.loopback import (
    IDENTITY,
    INDEX,
    VERSION,
    Offered,
    ScriptedServer,
    number,
    offering,
    remote_server,
)

FORMATS: list[FormatName] = ["sdmf", "mdmf"]


def token(kind: bytes, size: int = 0, body: bytes = b"") -> bytes:
    """One token: a number, its type, and what follows."""
    parts: list[bytes] = []
    int2b128(size, parts.append)
    return b"".join(parts) + kind + body


def text(data: bytes) -> bytes:
    return token(STRING, len(data), data)


def answer_to(request: int, *tokens: bytes) -> bytes:
    """The beginning of an answer."""
    return token(OPEN, 99) + text(b"answer") + token(INT, request) + b"".join(tokens)


BREAKING: Mapping[str, bytes] = {
    "unknown token": token(b"\xee", 3),
    "a header without end": b"\x01" * 70,
    "an error": token(ERROR, 12, b"you are lost"),
    "an error of a gigabyte": token(ERROR, 2**30),
    "a close of nothing": token(CLOSE, 7),
}
"""What no honest peer sends, in the midst of a call: the connection ends, and with it the call."""

SILENT: Mapping[str, bytes] = {
    "an integer of a gigabyte": answer_to(3, token(LONGINT, 2**30)),
    "a negative one": answer_to(3, token(LONGNEG, 2**62)),
    "a string of an exabyte": answer_to(3, token(STRING, 2**60)),
    "a name of an exabyte": token(OPEN, 0) + token(STRING, 2**60),
    "an unknown kind of message": token(OPEN, 0) + text(b"surprise") + token(CLOSE, 0),
    "a word of no vocabulary": answer_to(3, token(VOCAB, 9_999_999)),
    "a token of old": token(LIST, 5),
    "half an answer": answer_to(3, token(OPEN, 100), text(b"dict"), token(INT, 1)),
    "an answer to nobody": answer_to(77_777_777, text(b"x"), token(CLOSE, 99)),
    "pings": token(PING, 1) * 1000,
    "an abort": token(ABORT, 1),
    "half a string": answer_to(3, token(STRING, 60_000, b"abc")),
    "half a header": b"\x01" * 20,
    "a float": token(FLOAT, 0, b"\x7f\xf8" + bytes(6)),
    "a negative number": token(NEG, 5),
    "nothing": b"",
}
"""What may end the connection or may not: Foolscap skips what fits no schema, were it an exabyte. The call
then stays open until its plan stops waiting."""


class TokenServer(Referenceable):
    """Answers as ScriptedServer does until it breaks: then each call but that of the version is met with raw bytes."""

    def __init__(self, server: Any) -> None:
        self.honest = remote_server(server)
        self.offered: Offered | None = None
        self.data: bytes | None = None
        self.broken_count = 0

    def doRemoteCall(self, methodname: str, args: Any, kwargs: Any) -> Any:
        if self.data is None or methodname == "get_version":
            return self.honest.doRemoteCall(methodname, args, kwargs)
        self.broken_count += 1
        assert self.offered is not None
        for connection in list(self.offered.tub.brokers.values()):
            connection.transport.write(self.data)
        return Deferred()


class Versioned(SlotServer):
    """A server of slots that can be offered to remote clients."""

    @property
    def known_version(self) -> ServerVersion:
        return VERSION

    def asks_for_room(self, size: int) -> bool:
        return False

    async def get_version(self) -> ServerVersion:
        return VERSION


@asynccontextmanager
async def breaking(server: Any) -> AsyncIterator[tuple[TokenServer, FoolscapServer]]:
    """A server and a client of it."""
    from twisted.internet import reactor

    remote = TokenServer(server)
    async with offering(remote) as offered:
        remote.offered = offered
        tub = start_tub()
        client = FoolscapServer(IDENTITY, offered.furl, tub, ReactorClock(reactor))
        try:
            yield remote, client
        finally:
            client.close()
            await stop_tub(tub)


async def pause(seconds: float) -> None:
    from twisted.internet import reactor

    await deferLater(reactor, seconds)


@pytest.mark.parametrize("lie", BREAKING)
async def test_call_when_the_server_breaks_the_protocol_then_ends_and_the_next_reconnects(lie: str) -> None:
    server = ScriptedServer(shares={number(1): b"share"})
    async with breaking(server) as (remote, client):
        assert (await client.read_slot(INDEX, frozenset(), [(0, 5)])).keys() == {1}
        remote.data = BREAKING[lie]
        with pytest.raises(PeerError):
            await client.read_slot(INDEX, frozenset(), [(0, 5)])
        assert remote.broken_count
        remote.data = None
        client.forget_failures()
        assert (await client.read_slot(INDEX, frozenset(), [(0, 5)])).keys() == {1}


@pytest.mark.parametrize("lie", SILENT)
async def test_call_when_no_answer_comes_then_can_be_given_up_and_others_go_on(lie: str) -> None:
    server = ScriptedServer(shares={number(1): b"share"})
    async with breaking(server) as (remote, client):
        await client.connect()
        remote.data = SILENT[lie]
        outcomes: list[object] = []
        waiting = Deferred.fromCoroutine(client.read_slot(INDEX, frozenset(), [(0, 5)]))
        waiting.addBoth(outcomes.append)
        await pause(0.1)
        waiting.cancel()
        await pause(0)
        assert remote.broken_count
        [outcome] = outcomes
        assert outcome.check(PeerError, CancelledError)  # type: ignore[attr-defined]


async def test_answer_when_it_never_ends_then_is_cut_off_at_the_bound_of_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A list without end, of strings that each are allowed."""
    monkeypatch.setattr(broker, "MAX_WIRE_MESSAGE", 2**20)
    server = ScriptedServer(shares={number(1): b"share"})
    async with breaking(server) as (remote, client):
        await client.connect()
        remote.data = answer_to(3, token(OPEN, 100), text(b"list")) + text(b"x" * 1000) * 3000
        with pytest.raises(PeerError):
            await client.read_slot(INDEX, frozenset(), [(0, 5)])


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("lie", ["a string of an exabyte", "unknown token", "half an answer", "nothing"])
async def test_file_when_a_server_breaks_the_protocol_then_the_others_serve_it(lie: str, format: FormatName) -> None:
    from twisted.internet import reactor

    clock, pool = ReactorClock(reactor), ThreadCpuPool(reactor, 2)
    runtime = RealRuntime(clock=clock, cpu=pool, entropy=SystemEntropy())
    hostile = Versioned("hostile", clock)
    try:
        async with breaking(hostile) as (remote, client):
            servers: list[Any] = [client, *(SlotServer(f"server{index}", clock) for index in range(4))]
            grid = grid_of(servers, runtime, encoding=Encoding(k=2, n=5, happy=3))
            cap = await create_mutable(b"old", grid, format=format, key=known_key())
            remote.data = {**BREAKING, **SILENT}[lie]
            file = MutableFile(cap, grid)
            assert await file.read_all() == b"old"
            await file.modify(lambda old, _: old + b"!")
            fresh = MutableFile(cap.read_cap(), grid)
            assert await fresh.read_all() == b"old!"
            assert (await fresh.check()).recoverable
            assert remote.broken_count
    finally:
        pool.stop()
