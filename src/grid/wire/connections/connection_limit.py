"""Which connections keep their places when more come than a process serves. Pure.

Every accepted connection holds a place from its first moment. When there is no room for one more, the one that has shown
least gives way: first strangers, the oldest of them first, down to a quarter of the places, which newcomers need to show who they
are; then known clients between two requests, the longest idle first; then those that keep a request waiting, the slowest first. A
request that waits for this process alone never gives way. Strangers take no more than half of the places and one address no more
than three quarters, so that the rest is left for others.

It decides by order and by what the connections say of themselves; it knows no socket and no clock.
[docs/decisions/0135-places-of-connections.md]
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from ipaddress import AddressValueError, IPv4Address, IPv6Address, IPv6Network

from grid.limits import MAX_CONNECTIONS

PATIENCE_S = 0.5
"""How long a request may keep us waiting for its client before it can lose its place."""


class Standing(IntEnum):
    """What a connection has shown: nothing that lets it ask for anything; a known client's, between two requests or in one."""

    STRANGER = 0
    IDLE = 1
    ACTIVE = 2


def _nothing() -> None:
    pass


def _never() -> float:
    return 0.0


class Place:
    """One connection's place, held until `leave`."""

    def __init__(self, address: str | None) -> None:
        """address: what address_of says of the other end."""
        self.address = address
        self.standing = Standing.STRANGER
        self._rooms: list[_Room] = []
        self._give_up: Callable[[], None] = _nothing
        self._waited_s: Callable[[], float] = _never
        self._left: list[_Room] = []

    @property
    def crowd(self) -> int:
        """How many connections hold places beside this one, itself included."""
        return max(map(len, self._rooms), default=1)

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
        for room in self._rooms:
            room.discard(self)
        self.standing = standing
        for room in self._rooms:
            room.add(self)

    def leave(self) -> None:
        """The connection has ended."""
        self._leave_rooms()
        left, self._left = self._left, []
        for room in left:
            room.leaving_count -= 1

    def give_way(self) -> None:
        """Lose the place; until the connection has ended, it counts as leaving."""
        self._left = self._leave_rooms()
        for room in self._left:
            room.leaving_count += 1
        self._give_up()

    def take(self, rooms: list[_Room]) -> None:
        """Hold a place in those rooms too."""
        self._rooms += rooms
        for room in rooms:
            room.add(self)

    def _leave_rooms(self) -> list[_Room]:
        rooms, self._rooms = self._rooms, []
        for room in rooms:
            room.discard(self)
        return rooms


class _Room:
    """Places with one bound on all of them and one on strangers; in each standing, in the order in which it was reached."""

    def __init__(self, limit: int, slack: int) -> None:
        """slack: how many may be on their way out at once."""
        self._slack = slack
        self.leaving_count = 0
        self._limit = max(2, limit)
        self._stranger_limit = max(1, limit // 2)
        self._stranger_floor = limit // 4
        self._queues: tuple[dict[Place, None], ...] = tuple({} for _ in Standing)

    def __len__(self) -> int:
        return sum(map(len, self._queues))

    def add(self, place: Place) -> None:
        self._queues[place.standing][place] = None

    def discard(self, place: Place) -> None:
        self._queues[place.standing].pop(place, None)

    @property
    def is_hurried(self) -> bool:
        """Whether too many are on their way out: they are closed in the next turn, and a burst must not outrun that."""
        return self.leaving_count >= self._slack

    @property
    def has_room(self) -> bool:
        """Whether one more stranger fits."""
        return len(self) < self._limit and len(self._queues[Standing.STRANGER]) < self._stranger_limit

    def first_to_go(self) -> Place | None:
        """Whose place a newcomer may take; None if all are better used."""
        strangers, idle = self._queues[Standing.STRANGER], self._queues[Standing.IDLE]
        if len(strangers) > self._stranger_floor:
            return next(iter(strangers))
        if idle:
            return next(iter(idle))
        slowest = max(self._queues[Standing.ACTIVE], key=lambda place: place.waited_s, default=None)
        if slowest is not None and slowest.waited_s >= PATIENCE_S:
            return slowest
        return next(iter(strangers), None)


class Places:
    """The places of one process, or of one kind of connection."""

    def __init__(self, limit: int = MAX_CONNECTIONS) -> None:
        self._limit = limit
        self._slack = max(4, limit // 8)
        self._all = _Room(limit, self._slack)
        self._of_address: dict[str, _Room] = {}

    def __len__(self) -> int:
        return len(self._all)

    @property
    def most(self) -> int:
        """Connections that may be open at once, those included that have lost their places and are being closed."""
        return self._limit + self._slack

    @property
    def leaving_count(self) -> int:
        """Connections that have lost their places and are being closed."""
        return self._all.leaving_count

    def enter(self, host: str | None) -> Place | None:
        """A place for a new connection from there; None: close it at once. host: None where there are no addresses."""
        place = Place(None if host is None else address_of(host))
        return place if self.admit(place) else None

    def admit(self, place: Place) -> bool:
        """Whether a connection, perhaps with a place elsewhere, gets one here, after another gave way if need be."""
        rooms = [self._room_of(place.address), self._all] if place.address is not None else [self._all]
        if any(room.is_hurried for room in rooms):
            return False
        for room in rooms:
            if not room.has_room:
                other = room.first_to_go()
                if other is None:
                    return False
                other.give_way()
        place.take(rooms)
        return True

    def _room_of(self, address: str) -> _Room:
        room = self._of_address.get(address)
        if room is None:
            self._forget_empty()
            room = self._of_address[address] = _Room(max(2, self._limit * 3 // 4), self._slack // 2)
        return room

    def _forget_empty(self) -> None:
        """Keep no more rooms than there are connections, about."""
        if len(self._of_address) > 2 * len(self._all) + 16:
            self._of_address = {
                address: room for address, room in self._of_address.items() if len(room) or room.leaving_count
            }


def address_of(host: str) -> str:
    """What counts as one address: an IPv4 address, also within IPv6, or an IPv6 network of 64 bits."""
    try:
        address = IPv6Address(host.partition("%")[0])
    except AddressValueError:
        return host
    mapped: IPv4Address | None = address.ipv4_mapped
    return str(mapped) if mapped is not None else str(IPv6Network((int(address) >> 64 << 64, 64)))
