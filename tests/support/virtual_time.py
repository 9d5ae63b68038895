"""A runtime whose clock moves only when a test says so, or jumps to the next call that is due."""

from __future__ import annotations

import random
from bisect import insort
from collections.abc import Awaitable, Callable, Coroutine
from operator import attrgetter
from typing import Any, TypeVar

from twisted.internet.base import DelayedCall
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import Clock as TaskClock
from twisted.python.failure import Failure

from grid.runtime import ReactorClock

T = TypeVar("T")


class OrderedClock(TaskClock):
    """Twisted's test clock, which scans all calls at each step, with its calls kept in order."""

    def callLater(self, delay: float, callable: Callable[..., object], *args: object, **kw: object) -> IDelayedCall:
        """As every clock does."""
        call = DelayedCall(self.rightNow + delay, callable, args, kw, self.calls.remove, self._hastened, self.seconds)
        insort(self.calls, call, key=_TIME)
        return call

    def advance(self, amount: float) -> None:
        """Let time pass, and make all calls that are due by then."""
        self.rightNow += amount
        while self.calls and self.next_time() <= self.rightNow:
            call = self.calls.pop(0)
            call.called = 1
            call.func(*call.args, **call.kw)

    def next_time(self) -> float:
        """When the next call is due; there is one."""
        while (first := self.calls[0]).delayed_time:
            del self.calls[0]
            first.activate_delay()
            insort(self.calls, first, key=_TIME)
        return first.time

    def _hastened(self, call: DelayedCall) -> None:
        self.calls.remove(call)
        insort(self.calls, call, key=_TIME)


_TIME = attrgetter("time")


class VirtualClock(ReactorClock):
    """A ReactorClock over a test clock, which is also its monotonic time."""

    def __init__(self) -> None:
        self.task_clock = OrderedClock()
        super().__init__(self.task_clock)

    def now(self) -> float:
        return float(self.task_clock.seconds())

    def unix_time(self) -> float:
        return 1_700_000_000.0 + self.now()


class InlineCpu:
    """Runs every call at once, on the caller's thread, and counts them."""

    width = 2

    def __init__(self) -> None:
        self.calls: list[str] = []

    def run(self, function: Callable[..., T], *arguments: object) -> Awaitable[T]:
        self.calls.append(function.__name__)
        outcome: Deferred[T] = maybeDeferred(function, *arguments)
        return outcome


class SeededEntropy:
    """Bytes that a seed determines."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)


class VirtualRuntime:
    """Virtual time, inline work, seeded entropy."""

    def __init__(self, seed: int = 0) -> None:
        self.clock = VirtualClock()
        self.cpu = InlineCpu()
        self.entropy = SeededEntropy(seed)

    def run(self, coroutine: Coroutine[Any, Any, T], limit_s: float = 100_000.0) -> T:
        """Run the coroutine to its end, jumping from one due call to the next; returns its result or raises its error."""
        outcome: list[T | Failure] = []
        task = Deferred.fromCoroutine(coroutine)
        task.addBoth(outcome.append)
        clock = self.clock.task_clock
        while not outcome:
            assert clock.calls, "everything waits for nothing"
            assert clock.seconds() < limit_s, "virtual time ran out"
            clock.advance(max(0.0, clock.next_time() - clock.seconds()))
        result = outcome[0]
        if isinstance(result, Failure):
            result.raiseException()
        return result

    def settle(self) -> None:
        """Make all calls still due, so that a test sees the leftovers."""
        clock = self.clock.task_clock
        while clock.calls:
            clock.advance(max(0.0, clock.next_time() - clock.seconds()))
