"""The memory that the calls of one Foolscap connection hold, from the first byte of a message until its answer is ready.

If a connection has too many calls running, or its message finds no room in the memory shared by all connections, it is not
read from for a while. What it sends waits in the kernel, and nothing is refused. A message that comes too slowly is
given up, so that its room is released. [decision 0130]
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from twisted.internet.defer import Deferred, succeed

from grid.errors import PeerGoneError
from grid.limits import (
    MAX_CALLS_EACH,
    MESSAGE_RATE,
    MESSAGE_REVIEW_S,
    OVERSIZE_ANSWERS_BYTES,
    SMALL_REQUEST,
)
from grid.ports import Timer
from grid.wire.budget.server_memory import MadeWay, PressedRate, ServerMemory

_CLAIM_STEP = 2**16
"""Claims are rounded up to this, so that a message of several short strings seldom needs a second claim."""

_WAY_STEP = 2**22
"""Room taken from answers for an oversized message grows in these steps."""

_CALLS = "calls"
_ROOM = "room"


def _nowhere() -> None:
    return None


class _Claim:
    """The part of the request memory that a message, and then its call, holds."""

    def __init__(self) -> None:
        self.size = 0
        self.expands = False
        """Whether it has grown beyond its first claim. Only one claim at a time may, until its call has ended."""
        self._way_size = 0
        self._ways: list[MadeWay] = []

    async def make_way(self, memory: ServerMemory, excess: int) -> None:
        """Take room from answers before the claim exceeds the request memory by `excess` bytes. PeerRefusedError."""
        size = self._missing_way(excess)
        if size > 0:
            self._ways.append(await memory.make_way(size))
            self._way_size += size

    def may_overdraw(self, excess: int) -> bool:
        """Whether the claim may exceed the request memory by that much now."""
        return self.expands and self._missing_way(excess) <= 0

    def _missing_way(self, excess: int) -> int:
        return min(OVERSIZE_ANSWERS_BYTES, -(-excess // _WAY_STEP) * _WAY_STEP) - self._way_size

    def release(self, memory: ServerMemory | None) -> None:
        """Release everything, once."""
        size, self.size = self.size, 0
        ways, self._ways, self._way_size = self._ways, [], 0
        expands, self.expands = self.expands, False
        if memory is not None and size:
            memory.requests.release(size)
        for way in ways:
            way.release()
        if memory is not None and expands:
            memory.expansions.release(1)


class CallLoad:
    """The calls and memory of one connection."""

    def __init__(
        self,
        memory: ServerMemory | None,
        listen: Callable[[bool], None],
        drop: Callable[[], None],
        peer: Callable[[], Hashable] = _nowhere,
    ) -> None:
        """memory: shared with others; None: unlimited. listen: called with whether to read more from the socket.
        drop: ends the connection. peer: where it comes from.
        """
        self._memory = memory
        self._listen = listen
        self._drop = drop
        self._peer = peer
        self._reasons: set[str] = set()
        self._claims: dict[Any, _Claim] = {}
        self._message = _Claim()
        self._received = 0
        self._timer: Timer | None = None
        self._rate = PressedRate(0, 0.0)
        self._is_over = False
        self._waiting: Deferred[None] = succeed(None)

    @property
    def is_listening(self) -> bool:
        """Whether to read more from the socket."""
        return not self._reasons

    @property
    def call_count(self) -> int:
        """Running calls, including those that wait for their turn."""
        return len(self._claims)

    def call_came(self, delivery: Any) -> None:
        """Take over a complete call, with the claim of its message."""
        self._claims[delivery], self._message = self._message, _Claim()
        if self._memory is not None:
            self._memory.calls.enter()
        self._set(_CALLS, self._has_too_many())

    def call_ended(self, delivery: Any) -> None:
        """Release the claim of a call whose arguments are gone."""
        claim = self._claims.pop(delivery, None)
        if claim is None:
            return
        claim.release(self._memory)
        if self._memory is not None:
            self._memory.calls.leave()
        if _CALLS in self._reasons and not self._has_too_many():
            self._set(_CALLS, False)

    def message_began(self, received: int) -> None:
        """Note that a message has begun and not ended, however short. received: bytes of all messages so far."""
        self._received = received
        if self._timer is None and self._memory is not None and not self._is_over:
            self._watch(received)

    def message_holds(self, size: int, received: int) -> None:
        """Note that the current message needs at least `size` bytes. received: bytes of all messages so far."""
        self._received = received
        memory = self._memory
        if memory is None or size <= max(SMALL_REQUEST, self._message.size) or _ROOM in self._reasons:
            return
        missing = -(-size // _CLAIM_STEP) * _CLAIM_STEP - self._message.size
        if memory.requests.try_acquire(missing, self._peer()):
            self._claimed(missing)
        elif self._message.may_overdraw(missing - memory.requests.free):
            memory.requests.overdraw(missing)
            self._claimed(missing)
        else:
            self._set(_ROOM, True)
            self._waiting = Deferred.fromCoroutine(self._wait_for_room(memory, missing))
            self._waiting.addErrback(lambda _: None if self._is_over else self._drop())

    def message_ended(self) -> None:
        """Note that the message is over, and release the part of its claim that belonged to no call."""
        self._message.release(self._memory)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._forget_coming()

    def hurry(self, now: float) -> None:
        """Drop the connection if its message comes too slowly, because others wait for room."""
        if not self.is_listening:
            self._rate.excuse(self._received, now)
        elif self._rate.is_too_slow(self._message.size, self._received, now):
            self._forget_coming()
            self._drop()

    def close(self) -> None:
        """Close: the connection is gone. Running calls release what they hold when they end."""
        self._is_over = True
        self._waiting.cancel()
        self.message_ended()

    def _has_too_many(self) -> bool:
        memory = self._memory
        if len(self._claims) >= MAX_CALLS_EACH:
            return True
        if memory is None or memory.calls.has_room or not self._claims:
            return False
        memory.calls.wait(self._calls_have_room)
        return True

    def _calls_have_room(self) -> None:
        if _CALLS in self._reasons:
            self._set(_CALLS, self._has_too_many())

    async def _wait_for_room(self, memory: ServerMemory, missing: int) -> None:
        size, claim = 0, self._message
        try:
            if not claim.size:
                size = await memory.requests.acquire(missing, peer=self._peer())
                excess = missing - size
            else:
                # Connections that hold room and wait for more could wait for each other, so one at a time gets more at once.
                if not claim.expands:
                    await memory.expansions.acquire(1)
                    claim.expands = True
                excess = missing - memory.requests.free
            await claim.make_way(memory, excess)
            if self._is_over:
                raise PeerGoneError("the client closed the connection")
        except BaseException:
            memory.requests.release(size)
            self.message_ended()
            raise
        memory.requests.overdraw(missing - size)
        self._claimed(missing)
        self._set(_ROOM, False)

    def _claimed(self, size: int) -> None:
        self._message.size += size
        memory = self._memory
        if memory is not None and self not in memory.coming:
            self._rate = PressedRate(self._received, memory.clock.now())
            memory.coming[self] = None
            self.message_began(self._received)

    def _forget_coming(self) -> None:
        if self._memory is not None:
            self._memory.coming.pop(self, None)

    def _watch(self, received: int) -> None:
        memory = self._memory
        assert memory is not None

        def look() -> None:
            self._timer = None
            if self.is_listening and self._received - received < MESSAGE_RATE * MESSAGE_REVIEW_S:
                self._drop()
            else:
                self._watch(self._received)

        self._timer = memory.clock.call_later(MESSAGE_REVIEW_S, look)

    def _set(self, reason: str, is_on: bool) -> None:
        was_listening = self.is_listening
        if is_on:
            self._reasons.add(reason)
        else:
            self._reasons.discard(reason)
        if was_listening != self.is_listening and not self._is_over:
            self._listen(self.is_listening)
