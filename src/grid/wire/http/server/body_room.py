"""The memory that long request bodies hold from arrival until they are processed. Pure of sockets; waits are Deferreds.

Room is taken as bytes arrive, not as a head announces them, so that a client that sends nothing delays nobody. A body that finds
no room waits, but the oldest body that has begun always continues, so that at least one finishes. While any waits, clients
that send too slowly lose their connections. [docs/decisions/0135-connection-limit.md]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from twisted.internet.defer import Deferred

from grid.errors import PeerGoneError
from grid.ports import Clock, Timer

LOOK_S = 0.5
"""How often to look for slow clients while somebody waits."""

LOOK_BYTES = 32 * 1024
"""Bytes of each body that must have come since the last look."""


class Sender(Protocol):
    """What a room requires of the connection that a body comes from."""

    @property
    def is_broken(self) -> bool:
        """Whether the rest of the body will never come."""

    def hold_back(self) -> None:
        """Leave the rest of the body in the socket for now."""

    def abort(self) -> None:
        """Close the connection."""


class BodyRoom:
    """The memory that the bodies of all requests to one server may hold."""

    def __init__(self, total: int, clock: Clock, on_return: Callable[[int], object] = bool) -> None:
        """on_return: called with the number of bytes released."""
        self._total = total
        self._on_return = on_return
        self._clock = clock
        self._held = 0
        self._kept = 0
        self._coming: dict[BodyClaim, None] = {}
        self._waiters: deque[BodyClaim] = deque()
        self._timer: Timer | None = None

    @property
    def held_size(self) -> int:
        """Bytes held now."""
        return self._held

    def claim(self, sender: Sender) -> BodyClaim:
        """The claim of one body, empty at first. The context lasts while the body arrives."""
        return BodyClaim(self, sender)

    # Called by claims.

    def grant(self, claim: BodyClaim) -> bool:
        """Let the claim hold what it wants, if it may. Returns whether it does."""
        self._coming[claim] = None
        fits = not self._waiters and self._held + claim.wanted <= self._total
        if fits or self._must_go_on(claim):
            self._give(claim)
            return True
        return False

    def _must_go_on(self, claim: BodyClaim) -> bool:
        """Whether it is the oldest and no other would finish without it: complete bodies are soon released."""
        return not self._kept and next(iter(self._coming), None) is claim

    def wait(self, claim: BodyClaim) -> None:
        """Make the claim wait for its turn."""
        self._waiters.append(claim)
        claim.sender.hold_back()
        if self._timer is None:
            self._mark()

    def completed(self, claim: BodyClaim) -> None:
        """Note that the body has ended."""
        self._coming.pop(claim, None)
        if claim in self._waiters:
            self._waiters.remove(claim)  # The waiting task was canceled.
        self._advance()

    def keep(self, size: int) -> None:
        """Hold a complete body until it is released."""
        self._kept += size

    def release(self, size: int) -> None:
        """Release what a claim kept."""
        self._kept -= size
        self._held -= size
        self._on_return(size)
        self._advance()

    def _give(self, claim: BodyClaim) -> None:
        self._held += claim.wanted
        claim.held += claim.wanted
        claim.wanted = 0

    def _advance(self) -> None:
        while self._waiters:
            oldest = next(iter(self._coming), None)
            if oldest is not None and oldest.wanted and self._must_go_on(oldest):
                self._waiters.remove(oldest)
                claim = oldest
            elif self._held + self._waiters[0].wanted <= self._total:
                claim = self._waiters.popleft()
            else:
                return
            self._give(claim)
            claim.mark = None  # The time when it was held back does not count.
            claim.wake(None)

    def _mark(self) -> None:
        for claim in self._coming:
            claim.mark = claim.received
        self._timer = self._clock.call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._timer = None
        # One at a time: a body that resumes releases what it holds, and then others have had their turn.
        while (claim := next((each for each in self._waiters if each.sender.is_broken), None)) is not None:
            self._waiters.remove(claim)
            claim.wake(PeerGoneError("the client closed the connection"))
        if not self._waiters:
            return
        stalled = [claim for claim in self._coming if claim.is_stalled]
        for claim in stalled:
            claim.sender.abort()
        self._mark()


class BodyClaim:
    """The memory that one body holds, used in a `with` block."""

    def __init__(self, room: BodyRoom, sender: Sender) -> None:
        self._room = room
        self.sender = sender
        self.held = 0
        self.wanted = 0
        self.received = 0
        self.mark: int | None = None
        self._turn: Deferred[None] | None = None

    @property
    def is_stalled(self) -> bool:
        """Whether too little has come since the last look, although more could have."""
        return not self.wanted and self.mark is not None and self.received - self.mark < LOOK_BYTES

    async def take(self, size: int) -> None:
        """Add `size` bytes that came. Returns when there is room to keep them. PeerGoneError if the client goes away first."""
        self.received += size
        self.wanted = size
        if not self._room.grant(self):
            self._turn = Deferred()
            self._room.wait(self)
            await self._turn

    def keep(self) -> int:
        """Keep the complete body beyond the block. Returns the size to release at the end."""
        held, self.held = self.held, 0
        self._room.keep(held)
        return held

    def wake(self, error: Exception | None) -> None:
        """End the wait."""
        turn, self._turn = self._turn, None
        if turn is None:
            return
        if error is None:
            turn.callback(None)
        else:
            self.wanted = 0
            turn.errback(error)

    def __enter__(self) -> BodyClaim:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._room.completed(self)
        self._room.release(self.keep())
