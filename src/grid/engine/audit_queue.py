"""The queue of shares to verify for one file: a few run at once, each one step at a time. Pure.

It decides which share takes its next step and what observers see. The plan of each kind of file decides what a step is, and
what follows from a verdict.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from grid.ports import Event

AUDITS = 6
"""Shares verified at once."""


class Audit(Protocol):
    """The verification of one share, step by step, until it has a verdict."""

    @property
    def verdict(self) -> object | None:
        """The verdict; None while there is more to read or compute."""

    @property
    def size(self) -> int:
        """Bytes to read; 0 while unknown."""

    @property
    def bytes_done(self) -> int:
        """Bytes that need no more reading; all of them once there is a verdict."""


A = TypeVar("A", bound=Audit)


class AuditQueue(Generic[A]):
    """Audits that wait, audits that run, and in `done` the audits that have a verdict."""

    def __init__(self) -> None:
        self._waiting: deque[A] = deque()
        self._active: list[A] = []
        self._idle: list[A] = []
        self.done: list[A] = []

    def __bool__(self) -> bool:
        return bool(self._waiting or self._active)

    def add(self, audits: Iterable[A]) -> None:
        """Queue these shares for verification."""
        self._waiting.extend(audits)

    def take_waiting(self, is_wanted: Callable[[A], bool]) -> list[A]:
        """Remove and return the waiting audits that the predicate selects."""
        taken = [audit for audit in self._waiting if is_wanted(audit)]
        self._waiting = deque(audit for audit in self._waiting if audit not in taken)
        return taken

    def to_step(self) -> list[A]:
        """Return the audits that must take a step now. Report the end of each step to `stepped`."""
        while self._waiting and len(self._active) < AUDITS:
            self._active.append(self._waiting.popleft())
            self._idle.append(self._active[-1])
        idle, self._idle = self._idle, []
        return idle

    def stepped(self, audit: A, now: float) -> list[Event]:
        """Note that a step has ended, or that a waiting audit was dropped. Returns events for observers."""
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
