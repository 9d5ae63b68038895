"""Probes doubtful servers in the background, so that no operation has to find out whether they are back.

It owns when a server is asked, what, and how long it may take to answer; the memory interprets the answers. It never
asks servers that are not in doubt, and ends with its client.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from twisted.internet.defer import Deferred

from grid.engine.server_memory import Kind, ServerMemory
from grid.errors import GridError, PeerGoneError, PeerTimeoutError
from grid.ports import Runtime, ServerId, ShareNumber, StorageIndex, StorageServer
from grid.runtime import Tasks, with_deadline

FIRST_PAUSE_S = 1.0
"""Seconds before a server in doubt is first asked: one that was merely busy has answered something else by then."""

LONGEST_PAUSE_S = 30.0
"""The longest pause in seconds, reached by doubling: how late a server's return may go unnoticed."""

ANSWER_S = 5.0
"""Seconds to wait for an answer; asking again later is cheaper than waiting longer."""

_INDEX_SIZE = 16
_FIRST_SHARE = ShareNumber(0)
_FIRST_BYTE = ((0, 1),)

Probe = Callable[[StorageServer, StorageIndex], Awaitable[object]]


def _find(server: StorageServer, index: StorageIndex) -> Awaitable[object]:
    return server.find_shares(index)


def _read(server: StorageServer, index: StorageIndex) -> Awaitable[object]:
    return server.read_shares(index, {_FIRST_SHARE: _FIRST_BYTE})


def _read_slot(server: StorageServer, index: StorageIndex) -> Awaitable[object]:
    return server.read_slot(index, frozenset((_FIRST_SHARE,)), _FIRST_BYTE)


PROBES: Mapping[Kind, Probe] = {
    "FindShares": _find,
    "ReadShares": _read,
    "ReadSlot": _read_slot,
    "ReadFronts": _read_slot,
    "ReadFields": _read_slot,
    "ReadBlocks": _read_slot,
}
"""Kinds of request without effects.

A server that did not answer one is asked the same about a file that does not exist.

Keys are names of request classes, as in the memory, so a client that never probes imports none of them.
"""


class Prober:
    """Probes one client's servers in doubt, each with one request at a time."""

    def __init__(
        self, memory: ServerMemory, runtime: Runtime, find: Callable[[ServerId], StorageServer | None]
    ) -> None:
        """find: the current client of a server, None if the server is no longer known."""
        self._memory = memory
        self._clock = runtime.clock
        self._entropy = runtime.entropy
        self._find = find
        self._probes: dict[ServerId, Deferred[None]] = {}
        self._tasks = Tasks()

    def start(self) -> None:
        """Probe the servers in doubt now, and each further one when it comes into doubt."""
        self._memory.on_doubt = self._doubt
        for server_id in self._memory.in_doubt():
            self._doubt(server_id)

    def ask_once(self) -> None:
        """Ask each server in doubt once, immediately: for short-lived clients."""
        for server_id in self._memory.in_doubt():
            server = self._find(server_id)
            if server is not None:
                self._tasks.start(self._ask(server_id, server))

    def close(self) -> None:
        """Stop probing and cancel all timers."""
        self._memory.on_doubt = lambda _: None
        self._tasks.cancel()

    def _doubt(self, server_id: ServerId) -> None:
        """Ask the server soon, even if it is already being probed with long pauses."""
        under_way = self._probes.pop(server_id, None)
        if under_way is not None:
            under_way.cancel()
        self._probes[server_id] = self._tasks.start(self._probe(server_id))

    async def _probe(self, server_id: ServerId) -> None:
        """Ask until no doubt is left.

        A server that stalls on one kind of request stays in doubt for that kind for a while.
        """
        pause_s = FIRST_PAUSE_S
        while True:
            await self._clock.sleep(pause_s)
            server = self._find(server_id)
            if server is None or not self._memory.has_doubts(server_id):
                return
            await self._ask(server_id, server)
            if not self._memory.has_doubts(server_id):
                return
            pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)

    async def _ask(self, server_id: ServerId, server: StorageServer) -> None:
        """Ask for the version, then repeat what it did not answer; report each result to the memory."""
        try:
            await with_deadline(self._clock, server.get_version(), ANSWER_S, _late)
        except GridError:
            self._memory.unanswered(server_id)
            return
        kinds = self._memory.silent_on(server_id) & PROBES.keys()
        self._memory.heard(server_id, self._clock.now(), asked_apart=kinds)
        for kind in sorted(kinds):
            await self._ask_again(server_id, server, kind)

    async def _ask_again(self, server_id: ServerId, server: StorageServer, kind: Kind) -> None:
        """Send a request of this kind for a file that does not exist; any answer, even a refusal, ends the doubt."""
        index = StorageIndex(self._entropy.random_bytes(_INDEX_SIZE))
        try:
            await with_deadline(self._clock, PROBES[kind](server, index), ANSWER_S, _late)
        except (PeerTimeoutError, PeerGoneError):
            self._memory.unanswered(server_id)
            return
        except GridError:
            pass
        self._memory.answered(server_id, kind, self._clock.now())


def _late() -> PeerTimeoutError:
    return PeerTimeoutError("no answer to a probe")
