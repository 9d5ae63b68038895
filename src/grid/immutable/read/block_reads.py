"""The outstanding requests of a read for blocks and hash rows, and what each part of them is for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from grid import limits
from grid.engine.lateness import PendingRead
from grid.immutable.read.hash_rows import RowWant
from grid.immutable.read.held_share import HeldShare, Peer
from grid.immutable.read.segment_batch import Batch, BlockFetch
from grid.immutable.share.requests import ReadShares
from grid.ports import Range, ShareNumber
from grid.values import define


@define(kw_only=True, eq=False)
class Part:
    """What consecutive ranges in a request are for."""

    share: HeldShare
    ranges: Sequence[Range]
    purpose: BlockFetch | RowWant
    batch: Batch


class BlockReads:
    """Outstanding requests, each with its watch and with its parts in range order."""

    def __init__(self) -> None:
        self._reads: dict[ReadShares, tuple[PendingRead[Peer], list[Part]]] = {}

    def __contains__(self, request: ReadShares) -> bool:
        return request in self._reads

    def send(self, parts: Sequence[Part], now: float) -> list[ReadShares]:
        """Make one message per server, or as few as the message limits allow."""
        by_peer: dict[int, list[list[Part]]] = {}
        sizes: dict[int, tuple[int, int]] = {}
        for part in parts:
            order = part.share.peer.order
            size, count = sum(length for _, length in part.ranges), len(part.ranges)
            total, ranges = sizes.get(order, (limits.READ_CALL_BYTES, 0))
            if total + size > limits.READ_CALL_BYTES // 2 or ranges + count > limits.READ_CALL_RANGES:
                by_peer.setdefault(order, []).append([])
                total = ranges = 0
            by_peer[order][-1].append(part)
            sizes[order] = (total + size, ranges + count)
        return [self._send_one(group, now) for groups in by_peer.values() for group in groups]

    def end(self, request: ReadShares) -> tuple[PendingRead[Peer], list[Part]]:
        """Forget a request, and return its watch and parts."""
        return self._reads.pop(request)

    def of_peer(self, peer: Peer) -> list[ReadShares]:
        """The outstanding requests to that server."""
        return [request for request, (watch, _) in self._reads.items() if watch.load is peer]

    def peer_of(self, request: ReadShares) -> Peer:
        """The server that the request went to."""
        return self._reads[request][0].load

    def check(self, now: float) -> list[ReadShares]:
        """The requests that are hopeless now. Updates whether the others are late."""
        return [request for request, (watch, _) in self._reads.items() if watch.check(now)]

    def watches(self) -> list[PendingRead[Peer]]:
        """The watches of all outstanding requests."""
        return [watch for watch, _ in self._reads.values()]

    def any_late(self) -> bool:
        """Whether an answer was late at the last check."""
        return any(watch.late for watch, _ in self._reads.values())

    def wake_at(self) -> float | None:
        """When to check again."""
        return min((watch.wake_at for watch, _ in self._reads.values()), default=None)

    def _send_one(self, parts: list[Part], now: float) -> ReadShares:
        wants: dict[ShareNumber, list[Range]] = {}
        for part in parts:
            wants.setdefault(part.share.number, []).extend(part.ranges)
        size = sum(length for ranges in wants.values() for _, length in ranges)
        peer = parts[0].share.peer
        request = ReadShares(server_id=peer.server_id, wants=wants, size=size, share_numbers=tuple(wants))
        watch = peer.sent(size, now)
        self._reads[request] = (watch, parts)
        for part in parts:
            if isinstance(part.purpose, BlockFetch):
                part.purpose.watches[request] = watch
            else:
                part.purpose.watch = watch
        return request
