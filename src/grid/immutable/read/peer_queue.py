"""The servers of one open file, in the order in which a read asks them for shares. Pure.

It owns only the order. The share finder decides when to ask the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from grid.engine.latency import are_distant
from grid.engine.lateness import Answers
from grid.engine.server_memory import ServerMemory
from grid.immutable.read.held_share import Peer
from grid.immutable.share.requests import READ_KINDS
from grid.ports import ServerId


class PeerQueue:
    """The file's servers. Servers in doubt come last, and a server that failed gets a second chance at the end."""

    def __init__(self, server_ids: Sequence[ServerId], memory: ServerMemory) -> None:
        self._memory = memory
        self.answers = answers = Answers()
        self._peers = [
            Peer(
                server_id=server_id,
                order=order,
                latency=memory.latency(server_id),
                answers=answers,
                is_doubtful=memory.is_doubtful_for_any(server_id, READ_KINDS),
            )
            for order, server_id in enumerate(memory.trusted_first(server_ids, READ_KINDS))
        ]
        self._unasked = list(self._peers)
        self._second_chances: list[Peer] = []

    def __len__(self) -> int:
        return len(self._peers)

    def __iter__(self) -> Iterator[Peer]:
        return iter(self._peers)

    @property
    def is_empty(self) -> bool:
        """Whether no server is left to ask."""
        return not (self._unasked or self._second_chances)

    @property
    def is_distant(self) -> bool:
        """Whether even the nearest server is far away, as far as is known: then lines limit a read, and not processors."""
        return are_distant(min((peer.latency.quickest_s for peer in self._peers), default=float("inf")))

    @property
    def failed_count(self) -> int:
        """Servers that have failed and have not answered since."""
        return sum(1 for peer in self._peers if peer.error is not None)

    def next_unasked(self) -> Peer | None:
        """The next server that has not been asked."""
        return self._unasked.pop(0) if self._unasked else None

    def next_second_chance(self) -> Peer | None:
        """The next failed server that may be asked once more."""
        return self._second_chances.pop(0) if self._second_chances else None

    def failed(self, peer: Peer) -> None:
        """Give a server that has failed for the first time a second chance."""
        if peer.error is None:
            self._second_chances.append(peer)

    def resume(self) -> None:
        """Start another read: apply what other operations have learned about the servers."""
        for peer in self._peers:
            peer.is_doubtful = self._memory.is_doubtful_for_any(peer.server_id, READ_KINDS)
        self._unasked.sort(key=lambda peer: peer.is_doubtful)

    def settle(self, in_time: Iterable[Peer], late: Iterable[Peer]) -> None:
        """End a read that has not heard from these servers, so that the next read asks them again."""
        self._unasked = [*in_time, *self._unasked, *late]
        for peer in self._peers:
            peer.outstanding_bytes = 0
        self._second_chances = [peer for peer in self._peers if peer.error is not None]

    def spread_rate(self) -> None:
        """Give servers that have not sent blocks yet the average speed of the others."""
        known = [peer.latency.byte_s for peer in self._peers if peer.latency.rate_known]
        if not known:
            return
        average = sum(known) / len(known)
        for peer in self._peers:
            if not peer.latency.rate_known:
                peer.latency.byte_s = average
