"""The memory that one answer holds, from before it is read until it is sent.

It reserves room share by share and releases it. Its budget decides who gets room, and when. [decision 0130]
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from threading import Lock
from traceback import clear_frames
from types import TracebackType
from typing import Protocol, TypeVar

from grid.errors import NoRoomError

T = TypeVar("T")


class Outgoing(Protocol):
    """The connection over which an answer is sent."""

    @property
    def is_gone(self) -> bool:
        """Whether the client has stopped waiting for the answer."""

    @property
    def peer_address(self) -> str | None:
        """The client's address, if it tells clients apart."""

    @property
    def received_size(self) -> int:
        """Bytes that the client has received; only differences are meaningful."""

    def give_up(self) -> None:
        """Close the connection now, because its client is too slow."""


class Budget(Protocol):
    """Hands out room."""

    def try_take(self, peer: Hashable, held: int, size: int) -> bool:
        """Grow an answer from `held` to `size` bytes, if they are free and nobody waits for them. Safe on any thread."""

    def give_back(self, held: int, size: int) -> None:
        """Shrink an answer from `held` to `size` bytes. Call this on the event loop."""

    async def wait(self, reservation: Reservation, size: int) -> None:
        """Wait until `size` bytes are reserved. The reservation must be empty. DataTooLargeError, PeerRefusedError."""

    def is_sending(self, reservation: Reservation) -> None:
        """Note that the client must read the answer from now on."""

    def is_done(self, reservation: Reservation) -> None:
        """Note that nothing of the answer waits for its client."""

    def now(self) -> float:
        """Monotonic seconds."""


class Reservation:
    """The part of a budget that one answer holds, from before it is read until it is sent."""

    def __init__(self, budget: Budget, outgoing: Outgoing | None) -> None:
        self.outgoing = outgoing
        self.peer = None if outgoing is None else outgoing.peer_address
        self.holds_request = False
        """Whether the request's memory is held until the answer is sent."""
        self._budget = budget
        self._lock = Lock()
        self._size = 0
        self._unused = 0
        self._is_over = False
        self._is_sending = False
        self._received = 0
        self.behind_since = 0.0

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return self._size

    def take(self, size: int) -> bool:
        """Grow to `size` bytes if they are free. Safe on any thread."""
        with self._lock:
            missing = size - self._unused
            if self._is_over:
                return False
            if missing > 0:
                if not self._budget.try_take(self.peer, self._size, self._size + missing):
                    return False
                self._size += missing
            self._unused = max(0, -missing)
            return True

    async def read(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run the work and return its result; repeat it once there is room if there was none. PeerRefusedError."""
        while True:
            try:
                result = await work()
            except NoRoomError as error:
                size = error.size
                clear_frames(error.__traceback__)  # The exception's frames hold what was read before the room ran out.
            else:
                self._give_back(self._unused)
                return result
            self.empty()
            await self.acquire(size)

    async def acquire(self, size: int) -> None:
        """Wait for `size` bytes. The reservation must be empty. DataTooLargeError, PeerRefusedError."""
        await self._budget.wait(self, size)
        with self._lock:
            self._size = self._unused = size

    @property
    def is_gone(self) -> bool:
        """Whether the client has stopped waiting for the answer."""
        return self.outgoing is not None and self.outgoing.is_gone

    def sending(self) -> None:
        """Note that the answer waits for its client from now on."""
        if self.outgoing is None:
            return
        self._is_sending = True
        self._received = self.outgoing.received_size
        self.behind_since = self._budget.now()
        self._budget.is_sending(self)

    def empty(self) -> None:
        """Release the room. The reservation can be used again."""
        if self._is_sending:
            self._is_sending = False
            self._budget.is_done(self)
        self._give_back(self._size)

    def release(self) -> None:
        """Release the room for good. Data read later for an answer that is not sent holds no room."""
        with self._lock:
            self._is_over = True
        self.empty()

    def stalls(self, now: float, patience_s: float, rate: float) -> bool:
        """Whether its client has been slower than that rate for that long."""
        if self.outgoing is None:
            return False
        received = self.outgoing.received_size
        behind_s = now - self.behind_since
        if received - self._received >= max(1.0, rate * behind_s):
            self._received, self.behind_since = received, now
            return False
        return behind_s >= patience_s

    def give_up(self) -> None:
        """Disconnect the client."""
        if self.outgoing is not None:
            self.outgoing.give_up()

    def _give_back(self, size: int) -> None:
        with self._lock:
            held = self._size
            self._size -= size
            self._unused = 0
        if size:
            self._budget.give_back(held, held - size)
