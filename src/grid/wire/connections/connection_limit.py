"""Decides which connections keep their permits when more come than a process can serve. Pure.

Every accepted connection holds a permit from its first moment. If there is no room for another one, the least useful one
gives way: first strangers, the oldest first, down to a quarter of the permits, which newcomers need to identify
themselves; then known clients between requests, the longest idle first; then clients that keep a request waiting, the slowest first.
A request that waits only for this process never gives way. Strangers get at most half of the permits, and one address at most
three quarters, so that the rest is left for others.

It decides by order, and by what the connections report. It knows no sockets and no clock.
[docs/decisions/0135-connection-limit.md]
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from ipaddress import AddressValueError, IPv4Address, IPv6Address, IPv6Network

from grid.limits import MAX_CONNECTIONS

PATIENCE_S = 0.5
"""How long a request may wait for its client before it can lose its permit."""


class Standing(IntEnum):
    """What a connection has shown: nothing that entitles it to a request yet; or that its client is known, between requests or in one."""

    STRANGER = 0
    IDLE = 1
    ACTIVE = 2


def _nothing() -> None:
    pass


def _never() -> float:
    return 0.0


class Permit:
    """The permit of one connection, held until `release`."""

    def __init__(self, address: str | None) -> None:
        """address: the other end, as from address_of."""
        self.address = address
        self.standing = Standing.STRANGER
        self._groups: list[_Group] = []
        self._give_up: Callable[[], None] = _nothing
        self._waited_s: Callable[[], float] = _never
        self._left: list[_Group] = []

    @property
    def crowd(self) -> int:
        """How many connections hold permits together with this one, itself included."""
        crowd = 1
        for group in self._groups:  # A comparison, because this is asked for with each piece that is received or sent.
            if group.count > crowd:  # noqa: PLR1730
                crowd = group.count
        return crowd

    @property
    def waited_s(self) -> float:
        """How long the current request has waited for its client."""
        return self._waited_s()

    def hold(self, give_up: Callable[[], None], waited_s: Callable[[], float] = _never) -> None:
        """Set how to end the connection, and how long its request has waited for its client. give_up must not call back at once."""
        self._give_up = give_up
        self._waited_s = waited_s

    def stand(self, standing: Standing) -> None:
        """Move to the end of the connections with that standing."""
        before, self.standing = self.standing, standing
        for group in self._groups:
            group.queues[before].pop(self, None)
            group.queues[standing][self] = None

    def release(self) -> None:
        """Release the permit, because the connection has ended."""
        self._leave_groups()
        left, self._left = self._left, []
        for group in left:
            group.leaving_count -= 1

    def revoke(self) -> None:
        """Take the permit away. Until the connection has ended, it counts as leaving."""
        self._left = self._leave_groups()
        for group in self._left:
            group.leaving_count += 1
        self._give_up()

    def take(self, groups: list[_Group]) -> None:
        """Take a permit in those groups too."""
        self._groups += groups
        for group in groups:
            group.add(self)

    def _leave_groups(self) -> list[_Group]:
        groups, self._groups = self._groups, []
        for group in groups:
            group.discard(self)
        return groups


class _Group:
    """Permits with a limit on all of them and one on strangers. Each standing is in the order in which connections reached it."""

    def __init__(self, limit: int, slack: int) -> None:
        """slack: how many connections may be closing at once."""
        self._slack = slack
        self.leaving_count = 0
        self._limit = max(2, limit)
        self._stranger_limit = max(1, limit // 2)
        self._stranger_floor = limit // 4
        self.queues: tuple[dict[Permit, None], ...] = tuple({} for _ in Standing)
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def add(self, permit: Permit) -> None:
        queue = self.queues[permit.standing]
        self.count += permit not in queue
        queue[permit] = None

    def discard(self, permit: Permit) -> None:
        queue = self.queues[permit.standing]
        if permit in queue:
            del queue[permit]
            self.count -= 1

    @property
    def is_hurried(self) -> bool:
        """Whether too many are closing. They close in the next turn of the event loop, and a burst must not outrun that."""
        return self.leaving_count >= self._slack

    @property
    def has_room(self) -> bool:
        """Whether another stranger fits."""
        return len(self) < self._limit and len(self.queues[Standing.STRANGER]) < self._stranger_limit

    def first_to_go(self) -> Permit | None:
        """The permit that a newcomer may take; None if all are more useful."""
        strangers, idle = self.queues[Standing.STRANGER], self.queues[Standing.IDLE]
        if len(strangers) > self._stranger_floor:
            return next(iter(strangers))
        if idle:
            return next(iter(idle))
        slowest = max(self.queues[Standing.ACTIVE], key=lambda permit: permit.waited_s, default=None)
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
        """Connections that may be open at once, including those that have lost their permits and are closing."""
        return self._limit + self._slack

    @property
    def leaving_count(self) -> int:
        """Connections that have lost their permits and are closing."""
        return self._all.leaving_count

    def acquire(self, host: str | None) -> Permit | None:
        """A permit for a new connection from that host; None: close it at once. host: None if there are no addresses."""
        permit = Permit(None if host is None else address_of(host))
        return permit if self.admit(permit) else None

    def admit(self, permit: Permit) -> bool:
        """Give a connection, which may hold other permits, a permit here; another one may give way for it. Returns whether it got one."""
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
        """Drop empty groups when there are more of them than connections."""
        if len(self._of_address) > 2 * len(self._all) + 16:
            self._of_address = {
                address: group for address, group in self._of_address.items() if len(group) or group.leaving_count
            }


def address_of(host: str) -> str:
    """What counts as one address: an IPv4 address (also inside IPv6), or an IPv6 /64 network."""
    try:
        address = IPv6Address(host.partition("%")[0])
    except AddressValueError:
        return host
    mapped: IPv4Address | None = address.ipv4_mapped
    return str(mapped) if mapped is not None else str(IPv6Network((int(address) >> 64 << 64, 64)))
