"""What one answer holds of a server's memory, from before it is read until it is sent.

It takes room share by share and gives it back; who gets room, and when, is its budget's to say. [decision 0130]
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
    """The connection that an answer is sent over."""

    @property
    def is_gone(self) -> bool:
        """Whether nobody waits for the answer any more."""

    @property
    def peer_address(self) -> str | None:
        """Where the client is, as far as that tells clients apart."""

    @property
    def received_size(self) -> int:
        """Bytes that the client has received; only differences mean anything."""

    def give_up(self) -> None:
        """Close the connection now: its client takes too long."""


class Budget(Protocol):
    """Who hands out room."""

    def try_take(self, peer: Hashable, held: int, size: int) -> bool:
        """Let an answer that holds so much hold that size, if it is free and nobody waits for it; on any thread."""

    def give_back(self, held: int, size: int) -> None:
        """Let an answer that holds so much hold only that size; on the event loop."""

    async def wait(self, reservation: Reservation, size: int) -> None:
        """Return when `size` bytes were taken for the reservation, which holds none. DataTooLargeError, PeerRefusedError."""

    def is_sending(self, reservation: Reservation) -> None:
        """Its client has to take it now."""

    def is_done(self, reservation: Reservation) -> None:
        """Nothing of it waits for its client."""

    def now(self) -> float:
        """Monotonic seconds."""


class Reservation:
    """What one answer holds of a budget, from before it is read until it is sent."""

    def __init__(self, budget: Budget, outgoing: Outgoing | None) -> None:
        self.outgoing = outgoing
        self.peer = None if outgoing is None else outgoing.peer_address
        self.holds_request = False
        """Whether the memory of the request is held until the answer is sent."""
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
        """Bytes it holds."""
        return self._size

    def take(self, size: int) -> bool:
        """Take `size` bytes for the answer if they are free; on any thread."""
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
        """What the work returns, done again whenever its answer had no room and has some now. PeerRefusedError."""
        while True:
            try:
                result = await work()
            except NoRoomError as error:
                size = error.size
                clear_frames(error.__traceback__)  # They hold what was read before the room was gone.
            else:
                self._give_back(self._unused)
                return result
            self.empty()
            await self.acquire(size)

    async def acquire(self, size: int) -> None:
        """Wait for `size` bytes, while none are held. DataTooLargeError, PeerRefusedError."""
        await self._budget.wait(self, size)
        with self._lock:
            self._size = self._unused = size

    @property
    def is_gone(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self.outgoing is not None and self.outgoing.is_gone

    def sending(self) -> None:
        """From now on it waits for its client."""
        if self.outgoing is None:
            return
        self._is_sending = True
        self._received = self.outgoing.received_size
        self.behind_since = self._budget.now()
        self._budget.is_sending(self)

    def empty(self) -> None:
        """Give back what it holds; it can be used again."""
        if self._is_sending:
            self._is_sending = False
            self._budget.is_done(self)
        self._give_back(self._size)

    def release(self) -> None:
        """Give back what it holds for good: what is read for it and not answered, later, takes nothing."""
        with self._lock:
            self._is_over = True
        self.empty()

    def stalls(self, now: float, patience_s: float, rate: float) -> bool:
        """Whether its client has been behind that rate for so long."""
        if self.outgoing is None:
            return False
        received = self.outgoing.received_size
        behind_s = now - self.behind_since
        if received - self._received >= max(1.0, rate * behind_s):
            self._received, self.behind_since = received, now
            return False
        return behind_s >= patience_s

    def give_up(self) -> None:
        """Disconnect its client."""
        if self.outgoing is not None:
            self.outgoing.give_up()

    def _give_back(self, size: int) -> None:
        with self._lock:
            held = self._size
            self._size -= size
            self._unused = 0
        if size:
            self._budget.give_back(held, held - size)
