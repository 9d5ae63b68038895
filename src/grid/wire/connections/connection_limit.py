"""Which connections keep their permits when more come than a process serves. Pure.

Every accepted connection holds a permit from its first moment. When there is no room for one more, the one that has shown
least gives way: first strangers, the oldest of them first, down to a quarter of the permits, which newcomers need to show who they
are; then known clients between two requests, the longest idle first; then those that keep a request waiting, the slowest first. A
request that waits for this process alone never gives way. Strangers take no more than half of the permits and one address no more
than three quarters, so that the rest is left for others.

It decides by order and by what the connections say of themselves; it knows no socket and no clock.
[docs/decisions/0135-connection-limit.md]
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from ipaddress import AddressValueError, IPv4Address, IPv6Address, IPv6Network

from grid.limits import MAX_CONNECTIONS

PATIENCE_S = 0.5
"""How long a request may keep us waiting for its client before it can lose its permit."""


class Standing(IntEnum):
    """What a connection has shown: nothing that lets it ask for anything; a known client's, between two requests or in one."""

    STRANGER = 0
    IDLE = 1
    ACTIVE = 2


def _nothing() -> None:
    pass


def _never() -> float:
    return 0.0


class Permit:
    """One connection's permit, held until `release`."""

    def __init__(self, address: str | None) -> None:
        """address: what address_of says of the other end."""
        self.address = address
        self.standing = Standing.STRANGER
        self._groups: list[_Group] = []
        self._give_up: Callable[[], None] = _nothing
        self._waited_s: Callable[[], float] = _never
        self._left: list[_Group] = []

    @property
    def crowd(self) -> int:
        """How many connections hold permits beside this one, itself included."""
        return max(map(len, self._groups), default=1)

    @property
    def waited_s(self) -> float:
        """How long the request under way has kept us waiting for its client."""
        return self._waited_s()

    def hold(self, give_up: Callable[[], None], waited_s: Callable[[], float] = _never) -> None:
        """Say how to end the connection, and how long its request keeps us waiting. give_up: must not call back at once."""
        self._give_up = give_up
        self._waited_s = waited_s

    def stand(self, standing: Standing) -> None:
        """Come last among those of that standing."""
        for group in self._groups:
            group.discard(self)
        self.standing = standing
        for group in self._groups:
            group.add(self)

    def release(self) -> None:
        """The connection has ended."""
        self._leave_groups()
        left, self._left = self._left, []
        for group in left:
            group.leaving_count -= 1

    def revoke(self) -> None:
        """Lose the permit; until the connection has ended, it counts as leaving."""
        self._left = self._leave_groups()
        for group in self._left:
            group.leaving_count += 1
        self._give_up()

    def take(self, groups: list[_Group]) -> None:
        """Hold a permit in those groups too."""
        self._groups += groups
        for group in groups:
            group.add(self)

    def _leave_groups(self) -> list[_Group]:
        groups, self._groups = self._groups, []
        for group in groups:
            group.discard(self)
        return groups


class _Group:
    """Permits with one bound on all of them and one on strangers; in each standing, in the order in which it was reached."""

    def __init__(self, limit: int, slack: int) -> None:
        """slack: how many may be on their way out at once."""
        self._slack = slack
        self.leaving_count = 0
        self._limit = max(2, limit)
        self._stranger_limit = max(1, limit // 2)
        self._stranger_floor = limit // 4
        self._queues: tuple[dict[Permit, None], ...] = tuple({} for _ in Standing)

    def __len__(self) -> int:
        return sum(map(len, self._queues))

    def add(self, permit: Permit) -> None:
        self._queues[permit.standing][permit] = None

    def discard(self, permit: Permit) -> None:
        self._queues[permit.standing].pop(permit, None)

    @property
    def is_hurried(self) -> bool:
        """Whether too many are on their way out: they are closed in the next turn, and a burst must not outrun that."""
        return self.leaving_count >= self._slack

    @property
    def has_room(self) -> bool:
        """Whether one more stranger fits."""
        return len(self) < self._limit and len(self._queues[Standing.STRANGER]) < self._stranger_limit

    def first_to_go(self) -> Permit | None:
        """The permit that a newcomer may take; None if all are better used."""
        strangers, idle = self._queues[Standing.STRANGER], self._queues[Standing.IDLE]
        if len(strangers) > self._stranger_floor:
            return next(iter(strangers))
        if idle:
            return next(iter(idle))
        slowest = max(self._queues[Standing.ACTIVE], key=lambda permit: permit.waited_s, default=None)
        if slowest is not None and slowest.waited_s >= PATIENCE_S:
            return slowest
        return next(iter(strangers), None)


class ConnectionLimit:
    """The permits of one process, or of one kind of connection."""

    def __init__(self, limit: int = MAX_CONNECTIONS) -> None:
        self._limit = limit
        self._slack = max(4, limit // 8)
        self._all = _Group(limit, self._slack)
        self._of_address: dict[str, _Group] = {}

    def __len__(self) -> int:
        return len(self._all)

    @property
    def most(self) -> int:
        """Connections that may be open at once, those included that have lost their permits and are being closed."""
        return self._limit + self._slack

    @property
    def leaving_count(self) -> int:
        """Connections that have lost their permits and are being closed."""
        return self._all.leaving_count

    def acquire(self, host: str | None) -> Permit | None:
        """A permit for a new connection from there; None: close it at once. host: None where there are no addresses."""
        permit = Permit(None if host is None else address_of(host))
        return permit if self.admit(permit) else None

    def admit(self, permit: Permit) -> bool:
        """Whether a connection, perhaps with a permit elsewhere, gets one here, after another gave way if need be."""
        groups = [self._group_of(permit.address), self._all] if permit.address is not None else [self._all]
        if any(group.is_hurried for group in groups):
            return False
        for group in groups:
            if not group.has_room:
                other = group.first_to_go()
                if other is None:
                    return False
                other.revoke()
        permit.take(groups)
        return True

    def _group_of(self, address: str) -> _Group:
        group = self._of_address.get(address)
        if group is None:
            self._forget_empty()
            group = self._of_address[address] = _Group(max(2, self._limit * 3 // 4), self._slack // 2)
        return group

    def _forget_empty(self) -> None:
        """Keep no more groups than there are connections, about."""
        if len(self._of_address) > 2 * len(self._all) + 16:
            self._of_address = {
                address: group for address, group in self._of_address.items() if len(group) or group.leaving_count
            }


def address_of(host: str) -> str:
    """What counts as one address: an IPv4 address, also within IPv6, or an IPv6 network of 64 bits."""
    try:
        address = IPv6Address(host.partition("%")[0])
    except AddressValueError:
        return host
    mapped: IPv4Address | None = address.ipv4_mapped
    return str(mapped) if mapped is not None else str(IPv6Network((int(address) >> 64 << 64, 64)))
