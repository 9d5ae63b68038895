"""Long reads and writes of our servers, split over several connections on long lines. [grid.wire.http.client.spread]

Cost: one request, or one per part. The parts take turns at the connections.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from grid.errors import GridError
from grid.ports import Range, ShareNumber, ShareWrite, StorageIndex
from grid.wire.http.client import batched_requests
from grid.wire.http.client.batched_requests import Found
from grid.wire.http.client.requester import Access, Requester, all_of
from grid.wire.http.client.spread import Direction, join_answers, split_wants, split_writes

P = TypeVar("P")
T = TypeVar("T")


async def find_shares(requester: Requester, access: Access, index: StorageIndex, ranges: Sequence[Range]) -> Found:
    """Every share with those ranges. A share has no data if the server left it out because the answer would be too long."""
    size = sum(length for _, length in ranges)
    count = requester.pool.part_count(access.address, Direction.DOWN, size)
    # No share number is known yet, so the parts of one unnamed share stand for those of each share.
    split = split_wants({ShareNumber(0): ranges}, count) if count > 1 else []
    parts = [next(iter(part.values())) for part in split if part]
    if len(parts) < 2:
        found = await batched_requests.find_shares(requester, access, index, ranges)
    else:
        answers = await _in_turn(
            requester,
            access,
            Direction.DOWN,
            lambda part: batched_requests.find_shares(requester, access, index, part),
            parts,
        )
        found = {}
        for number in answers[0]:
            joined = join_answers(ranges, parts, [answer.get(number) for answer in answers])
            if joined is not None:
                found[number] = joined
    requester.pool.moved(access.address, Direction.DOWN, size if found else 0)
    return found


async def read_shares(
    requester: Requester, access: Access, index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
) -> Found:
    """The ranges of those shares that exist."""
    size = sum(length for ranges in wants.values() for _, length in ranges)
    count = requester.pool.part_count(access.address, Direction.DOWN, size)
    parts = split_wants(wants, count) if count > 1 and all(wants.values()) else []
    if len(parts) < 2:
        found = await batched_requests.read_shares(requester, access, index, wants)
    else:
        answers = await _in_turn(
            requester,
            access,
            Direction.DOWN,
            lambda part: batched_requests.read_shares(requester, access, index, part),
            parts,
        )
        found = {}
        for number, ranges in wants.items():
            held = [
                (part[number], answer.get(number))
                for part, answer in zip(parts, answers, strict=True)
                if number in part
            ]
            joined = join_answers(ranges, [part for part, _ in held], [answer for _, answer in held])
            if joined is not None:
                found[number] = joined
    requester.pool.moved(access.address, Direction.DOWN, size if found else 0)
    return found


async def write_shares(
    requester: Requester, access: Access, index: StorageIndex, secret: bytes, writes: Sequence[ShareWrite]
) -> frozenset[ShareNumber]:
    """Store all writes. Returns the shares that these writes completed and closed."""
    size = sum(write.size for write in writes)
    count = requester.pool.part_count(access.address, Direction.UP, size)
    if count < 2:
        complete = await batched_requests.write_shares(requester, access, index, secret, writes)
    else:
        parts = split_writes(writes, count)
        answers = await _in_turn(
            requester,
            access,
            Direction.UP,
            lambda part: batched_requests.write_shares(requester, access, index, secret, part),
            parts,
        )
        complete = frozenset[ShareNumber]().union(*answers)
    requester.pool.moved(access.address, Direction.UP, size)
    return complete


async def _in_turn(
    requester: Requester, access: Access, direction: Direction, send: Callable[[P], Awaitable[T]], parts: Sequence[P]
) -> list[T]:
    """The answers to all parts, in order. After a failure, no further part is sent."""
    turns = requester.pool.turns(access.address, direction)
    failures: list[GridError] = []

    async def one(part: P) -> T:
        await turns.acquire()
        try:
            if failures:
                raise failures[0]
            return await send(part)
        except GridError as error:
            failures.append(error)
            raise
        finally:
            turns.release()

    return await all_of(one(part) for part in parts)
