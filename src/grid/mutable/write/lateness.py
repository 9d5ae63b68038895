"""When a write to a server is late, so that others go on without it, and when it is hopeless. Pure.

It judges one server's request by the answers of the others in the same plan, and by what the client remembers of the server.
What a late server would have held is for the plan to say.
"""

from __future__ import annotations

from attrs import define

from grid.engine.server_memory import SHORT_PATIENCE_S, ServerMemory
from grid.ports import ServerId

HEDGE_S = 0.2
HEDGE_FACTOR = 4.0
"""Once enough servers have a version, another one gets this long, or so many times the slowest answer of the plan."""

LATENCY_FACTOR = 2.0
"""A trusted server gets at least so many times what its answers usually take: one that is far away is not left out."""

DOUBT_FACTOR = 2.0
"""A server in doubt gets so many times the slowest answer of the others."""

UNANSWERED_S = 2.0
"""Before anybody has answered, nobody is late sooner: the line is slow, or the messages are large."""

REPAIR_HEDGE_S = 1.0
"""The same as HEDGE_S for a repair: the file is safe already, and a share is what the repair is for."""

HOPELESS_S = 60.0
SLOWEST_RATE = 20e3
"""No write is waited for longer than this, plus its bytes at this rate a second."""


@define(kw_only=True, eq=False)
class WriteHedge:
    """floor_s: HEDGE_S, or what else the job asks for. slowest_s, largest: of the answers so far; heard: there were any."""

    memory: ServerMemory
    floor_s: float = HEDGE_S
    slowest_s: float = 0.0
    largest: int = 0
    heard: bool = False

    def learn(self, size: int, elapsed_s: float) -> None:
        """A request of `size` bytes was answered."""
        self.heard = True
        self.slowest_s = max(self.slowest_s, elapsed_s)
        self.largest = max(self.largest, size)

    def late_at(self, server_id: ServerId, kind: str, size: int, sent_at: float) -> float:
        """When others need not wait for it any longer."""
        is_doubtful = self.memory.is_doubtful(server_id, kind)
        usual_s = self.slowest_s * max(1.0, size / max(1, self.largest))
        if is_doubtful:
            return sent_at + max(SHORT_PATIENCE_S, DOUBT_FACTOR * usual_s)
        if not self.heard:
            return sent_at + max(UNANSWERED_S, size / SLOWEST_RATE)
        latency = self.memory.latency(server_id)
        far_s = LATENCY_FACTOR * latency.latency_s if latency.latency_known else 0.0
        return sent_at + max(self.floor_s, HEDGE_FACTOR * usual_s, far_s)

    def hopeless_at(self, size: int, sent_at: float) -> float:
        """When it is given up, although it is needed."""
        return sent_at + HOPELESS_S + size / SLOWEST_RATE
