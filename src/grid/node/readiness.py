"""Waits until a newly started grid can be used: every server has been announced and has answered.

Servers remembered from last time do not count: their addresses may be unchanged, but other clients cannot find them
until they announce themselves again.
"""

from __future__ import annotations

from collections.abc import Callable

from grid.errors import GridError, PeerTimeoutError
from grid.node.client import Client
from grid.plural import counted
from grid.ports import ServerId
from grid.runtime import with_deadline

_ANSWER_S = 5.0
_PAUSE_S = 0.05


async def wait_for_servers(client: Client, count: int, deadline_s: float, complain: Callable[[], None]) -> None:
    """Wait until `count` servers are announced and have answered over their transport; GridError if that takes too
    long.

    complain: called repeatedly meanwhile; it may raise to end the wait.
    """
    client.start()
    clock = client.runtime.clock
    give_up_at = clock.now() + deadline_s
    answered: set[ServerId] = set()
    while len(answered) < count:
        complain()
        if clock.now() > give_up_at:
            raise GridError(f"only {len(answered)} of {counted(count, 'server')} answered within {deadline_s:.0f} s")
        vouched_for = {entry.counts_as for entry in client.server_set.entries if entry.is_vouched_for}
        for server in client.server_set.servers:
            if server.identity.server_id in vouched_for - answered:
                try:
                    await with_deadline(clock, server.get_version(), _ANSWER_S, lambda: PeerTimeoutError("no answer"))
                except GridError:
                    continue
                answered.add(server.identity.server_id)
        await clock.sleep(_PAUSE_S)
