"""All kinds of hostile load on one storage node at once, over both protocols: it stays below 200 MiB and keeps serving.

A real node, real sockets.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from typing import Any

from attrs import define
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from grid.limits import MAX_STORAGE_CONNECTIONS, READ_CALL_RANGES
from grid.runtime import ReactorClock
from grid.wire.http.format.authority import authorization
from grid.wire.http.format.routes import pack_path
from grid.wire.packed.share_ranges import pack_wants
from tests.node.test_unread_answers import (
    IDLE_BYTES,
    MOST_RESIDENT,
    Node,
    ask_and_never_read,
    pack_request,
    references,
    running_node,
)
from tests.node.unread_requests import (
    ALL,
    FREE,
    INDEX,
    PART,
    SLOT,
    SLOT_SECRETS,
    SOME,
    WHOLE,
    WRITE_SECRETS,
    HttpRequest,
    slot_read,
)

SLOT_READS = 20
MANY_RANGE_READS = 100
BODIES = 20
CALLS = 12
BODY_SIZE = 60 * 10**6
PIECE = bytes(2**17)
PIECES_AT_ONCE = 8
MOST_ROUNDS = 4000

MANY_RANGES = HttpRequest(
    "POST",
    pack_path(INDEX, "immutable", "grid-read"),
    pack_wants({number: [(each, 4000) for each in range(READ_CALL_RANGES // len(SOME))] for number in SOME}),
)
LONG_BODY = HttpRequest("POST", pack_path(FREE, "mutable", "read-test-write"), secrets=WRITE_SECRETS)


@define(eq=False)
class Body:
    """A request whose body is being sent."""

    connection: socket.socket
    sent_size: int = 0

    def send_some(self) -> None:
        with suppress(OSError):
            for _ in range(PIECES_AT_ONCE):
                self.sent_size += self.connection.send(PIECE)


def ask_over_http(closing: ExitStack, node: Node) -> list[Body]:
    """Ask for answers that nobody reads, and begin long bodies."""
    token = authorization(node.furl.swissnum)
    for request, count in ((slot_read(ALL, PART), SLOT_READS), (MANY_RANGES, MANY_RANGE_READS)):
        message = pack_request(request, token)
        for _ in range(count):
            ask_and_never_read(closing, node.port, message)
    head = pack_request(LONG_BODY, token, BODY_SIZE)
    bodies = [Body(ask_and_never_read(closing, node.port, head)) for _ in range(BODIES)]
    for body in bodies:
        body.connection.setblocking(False)
    return bodies


def call_and_never_read(server: Any, calls: Sequence[tuple[str, list[Any]]]) -> None:
    """Make the calls over a connection that reads no answers."""
    server.tracker.broker.transport.pauseProducing()
    for method, arguments in calls:
        for _ in range(CALLS):
            sent: Deferred[Any] = server.callRemote(method, *arguments, _useSchema=False)
            sent.addErrback(lambda _: None)


def write_over_foolscap(server: Any) -> None:
    """One long write in one message."""
    vectors: dict[int, Any] = {0: ([], [(0, bytes(BODY_SIZE))], None)}
    call = server.callRemote("slot_testv_and_readv_and_writev", FREE, SLOT_SECRETS, vectors, [], _useSchema=False)
    call.addErrback(lambda _: None)


async def test_node_under_all_kinds_of_load_at_once_stays_below_200_mib(tmp_path: Path) -> None:
    clock = ReactorClock(reactor)
    many = [(each, 4000) for each in range(READ_CALL_RANGES)]
    async with running_node(tmp_path) as node, AsyncExitStack() as foolscap:
        with ExitStack() as closing:
            node.forget_peak()
            readers = [(await foolscap.enter_async_context(references(node))).server for _ in range(2)]
            writers = [(await foolscap.enter_async_context(references(node))).server for _ in range(2)]
            for reader in readers:
                call_and_never_read(reader, [("slot_readv", [SLOT, [], WHOLE]), ("slot_readv", [SLOT, [0], many])])
            for writer in writers:
                write_over_foolscap(writer)
            bodies = ask_over_http(closing, node)
            for _ in range(MOST_ROUNDS):
                for body in bodies:
                    body.send_some()
                if max(body.sent_size for body in bodies) >= BODY_SIZE:
                    break
                await clock.sleep(0.02)
            await node.quiet()
            assert max(body.sent_size for body in bodies) >= BODY_SIZE
            peak = node.peak
        async with references(node) as at:
            assert await at.server.callRemote("slot_readv", SLOT, [0], [(0, 1)])
    others = MAX_STORAGE_CONNECTIONS - SLOT_READS - MANY_RANGE_READS - BODIES - len(readers) - len(writers)
    assert peak + others * IDLE_BYTES < MOST_RESIDENT, "whatever connections are idle beside the load"
