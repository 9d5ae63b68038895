"""Servers in doubt asked in the background whether they are there, so that no operation has to find out.

It owns when a server is asked and how long it may take to answer; what an answer means is the memory's to say. It asks
nothing of servers that are not in doubt, and ends with its client.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred

from grid.engine.server_memory import ServerMemory
from grid.errors import GridError, PeerTimeoutError
from grid.ports import Clock, ServerId, StorageServer
from grid.runtime import Tasks, with_deadline

FIRST_PAUSE_S = 1.0
"""Before a server in doubt is asked first: one that was only busy has answered something else by then."""

LONGEST_PAUSE_S = 30.0
"""What the pause grows to, doubled each time: how late the return of a server is noticed that nothing else asks."""

ANSWER_S = 5.0
"""How long an answer may take; asking again later is cheaper than to wait for longer."""


class Prober:
    """The background questions of one client to its servers in doubt, one at a time for each server."""

    def __init__(self, memory: ServerMemory, clock: Clock, find: Callable[[ServerId], StorageServer | None]) -> None:
        """find: the present client of a server, None if the server is not known any more."""
        self._memory = memory
        self._clock = clock
        self._find = find
        self._probes: dict[ServerId, Deferred[None]] = {}
        self._tasks = Tasks()

    def start(self) -> None:
        """Probe the servers that are in doubt now, and from now on each one when it becomes so."""
        self._memory.on_doubt = self._doubt
        for server_id in self._memory.in_doubt():
            self._doubt(server_id)

    def ask_once(self) -> None:
        """Ask each server that is in doubt now one time, at once: for clients that do not run for long."""
        for server_id in self._memory.in_doubt():
            server = self._find(server_id)
            if server is not None:
                self._tasks.start(self._ask(server_id, server))

    def close(self) -> None:
        """Stop probing; no timer is left."""
        self._memory.on_doubt = lambda _: None
        self._tasks.cancel()

    def _doubt(self, server_id: ServerId) -> None:
        """Ask that server soon, also if it is asked already, with pauses that have grown long."""
        under_way = self._probes.pop(server_id, None)
        if under_way is not None:
            under_way.cancel()
        self._probes[server_id] = self._tasks.start(self._probe(server_id))

    async def _probe(self, server_id: ServerId) -> None:
        """Ask until no doubt is left. A server that stalls on one kind of request stays in doubt for that for a while."""
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
        """Ask for the version, and tell the memory if an answer comes."""
        try:
            await with_deadline(self._clock, server.get_version(), ANSWER_S, _late)
        except GridError:
            return
        self._memory.heard(server_id, self._clock.now())


def _late() -> PeerTimeoutError:
    return PeerTimeoutError("no answer to a probe")
