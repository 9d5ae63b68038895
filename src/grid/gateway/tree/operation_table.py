"""Handles of operations and how long they live. Pure but for a clock's timers. [spec webapi 7.1]

Owns the bounds on operations: how many are remembered, how many run, and what all of them keep together.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from attrs import define

from grid.gateway.faults import NotFound, TooManyRequests
from grid.limits import MAX_OPERATIONS, MAX_RUNNING_OPERATIONS
from grid.ports import Clock, Timer

UNCOLLECTED_S = 4 * 86400.0
"""How long a finished operation waits for somebody to ask."""

COLLECTED_S = 86400.0
"""How long it stays after somebody did."""


class Work(Protocol):
    """What runs behind a handle."""

    @property
    def finished(self) -> bool:
        """Whether it ended, well or not."""

    def cancel(self) -> None:
        """Give it up."""

    def forget(self) -> None:
        """Nobody will ask for it any more."""


W = TypeVar("W", bound=Work)


@define(eq=False)
class _Entry(Generic[W]):
    work: W
    started_at: float
    retain_s: float | None
    is_collected: bool = False
    ended_at: float | None = None
    timer: Timer | None = None


class OperationTable(Generic[W]):
    """The operations of a gateway, by the handles that clients chose."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[str, _Entry[W]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def make_room(self, handle: str) -> None:
        """What is to be done before a new operation: the older one of the handle goes, and maybe the oldest that ended.

        TooManyRequests if as many run as may.
        """
        self.release(handle)
        if sum(not entry.work.finished for entry in self._entries.values()) >= MAX_RUNNING_OPERATIONS:
            headers = (("Retry-After", "60"),)
            raise TooManyRequests("as many operations run as may; cancel one, or wait for its end", headers=headers)
        if len(self._entries) >= MAX_OPERATIONS:
            self.forget_oldest()

    def forget_oldest(self) -> bool:
        """Release the finished operation that was started first; whether there was one."""
        for handle, entry in self._entries.items():
            if entry.work.finished:
                self.release(handle)
                return True
        return False

    def add(self, handle: str, work: W, retain_s: float | None) -> None:
        """A new operation. retain_s: how long it stays after its end, None for the usual times."""
        self._entries[handle] = entry = _Entry(work, self._clock.now(), retain_s)
        if work.finished:
            self._ended(handle, entry)

    def ended(self, work: W) -> None:
        """An operation ended by itself: its time begins to run."""
        for handle, entry in self._entries.items():
            if entry.work is work:
                self._ended(handle, entry)
                return

    def look_at(self, handle: str, retain_s: float | None) -> W:
        """The operation, for somebody who asked for its state; NotFound."""
        entry = self._entries.get(handle)
        if entry is None:
            raise NotFound(f"unknown/expired handle {handle[:100]!r}", shape="page")
        if retain_s is not None:
            entry.retain_s = retain_s
        if entry.work.finished and (retain_s is not None or not entry.is_collected):
            entry.is_collected = True
            self._set_timer(handle, entry)
        return entry.work

    def release(self, handle: str) -> None:
        """Forget an operation, if there is one of that handle; it is cancelled if it runs."""
        entry = self._entries.pop(handle, None)
        if entry is None:
            return
        if entry.timer is not None:
            entry.timer.cancel()
        if not entry.work.finished:
            entry.work.cancel()
        entry.work.forget()

    def close(self) -> None:
        """Cancel and forget them all."""
        for handle in list(self._entries):
            self.release(handle)

    def _ended(self, handle: str, entry: _Entry[W]) -> None:
        entry.ended_at = self._clock.now()
        self._set_timer(handle, entry)

    def _set_timer(self, handle: str, entry: _Entry[W]) -> None:
        now = self._clock.now()
        ended_at = now if entry.ended_at is None else entry.ended_at
        if entry.retain_s is not None:
            stays_s = entry.retain_s
        elif entry.is_collected:
            stays_s = COLLECTED_S
        else:
            stays_s = max(UNCOLLECTED_S, ended_at - entry.started_at)
        if entry.timer is not None:
            entry.timer.cancel()
        entry.timer = self._clock.call_later(stays_s, lambda: self._expire(handle, entry))

    def _expire(self, handle: str, entry: _Entry[W]) -> None:
        entry.timer = None
        if self._entries.get(handle) is entry:
            self.release(handle)
