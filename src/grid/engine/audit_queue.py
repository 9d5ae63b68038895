"""The shares of one file that are verified: a few at once, each step by step. Pure.

It owns which share goes on and what observers hear of it. What a step is, and what follows from a verdict, is decided by the
plan of each kind of file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from grid.ports import Event

AUDITS = 6
"""Shares verified at once."""


class Audit(Protocol):
    """The way of one share to its verdict."""

    @property
    def verdict(self) -> object | None:
        """None as long as there is more to read or compute."""

    @property
    def size(self) -> int:
        """Bytes to read; 0 while that is unknown."""

    @property
    def bytes_done(self) -> int:
        """How many of them need no more reading: all once there is a verdict."""


A = TypeVar("A", bound=Audit)


class AuditQueue(Generic[A]):
    """Audits that wait, those that are under way, and in `done` those with a verdict."""

    def __init__(self) -> None:
        self._waiting: deque[A] = deque()
        self._active: list[A] = []
        self._idle: list[A] = []
        self.done: list[A] = []

    def __bool__(self) -> bool:
        return bool(self._waiting or self._active)

    def add(self, audits: Iterable[A]) -> None:
        """Have these shares verified."""
        self._waiting.extend(audits)

    def take_waiting(self, is_wanted: Callable[[A], bool]) -> list[A]:
        """Audits that have not begun, taken out of the queue."""
        taken = [audit for audit in self._waiting if is_wanted(audit)]
        self._waiting = deque(audit for audit in self._waiting if audit not in taken)
        return taken

    def to_step(self) -> list[A]:
        """The audits that take their next step now. Report the end of each step to `stepped`."""
        while self._waiting and len(self._active) < AUDITS:
            self._active.append(self._waiting.popleft())
            self._idle.append(self._active[-1])
        idle, self._idle = self._idle, []
        return idle

    def stepped(self, audit: A, now: float) -> list[Event]:
        """A step has ended, or an audit that has not begun was given up. Returns what observers should hear."""
        events: list[Event] = []
        if audit.verdict is None:
            self._idle.append(audit)
        else:
            if audit in self._active:
                self._active.remove(audit)
            self.done.append(audit)
            total = len(self.done) + len(self._waiting) + len(self._active)
            events.append(Event(at=now, what="progress", detail="verifying", count=len(self.done), total=total))
        count = sum(other.bytes_done for other in (*self.done, *self._active))
        size = sum(other.size for other in (*self.done, *self._active, *self._waiting))
        if size:
            events.append(Event(at=now, what="verified", count=count, total=size))
        return events
