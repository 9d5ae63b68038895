"""Runs one coroutine on the reactor from start to end, and stops the reactor when it ends.

Ctrl-C and SIGTERM cancel the coroutine, whose `finally` blocks still run (an upload removes its shares, a node shuts
down). A second signal ends the process at once, except a second SIGTERM while requests of others may be running.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError as TwistedCancelled
from twisted.internet.defer import Deferred
from twisted.logger import ILogObserver, globalLogBeginner, textFileLogObserver
from twisted.python.failure import Failure

from grid.errors import CancelledError
from grid.runtime import collect_garbage, forbid_core_dumps, use_monotonic_time

T = TypeVar("T")

CLEAN_UP_S = 20.0
"""Seconds that an interrupted command may take to clean up, in addition to `drain_s`."""


class InterruptedBySignal(CancelledError):
    """A signal ended the command. number: of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__("interrupted")
        self.number = number


def run_task(
    task: Callable[[Any], Coroutine[Any, Any, T]], observer: ILogObserver | None = None, drain_s: float = 0.0
) -> T:
    """Return the coroutine's result or raise its error; InterruptedBySignal if a signal ended it. Once per process.

    task: takes the reactor and makes the coroutine. observer: receives the log; without one, GRID_DEBUG=1 sends it to
    stderr. drain_s: seconds that the interrupted task waits for requests of others.
    """
    from twisted.internet import reactor as global_reactor

    reactor: Any = global_reactor
    forbid_core_dumps()
    use_monotonic_time(reactor)
    _begin_logging(observer)
    outcome: list[Any] = []
    interruption = _Interruption(reactor, drain_s)

    def ended(result: object) -> None:
        outcome.append(result)
        if reactor.running:
            reactor.stop()

    def start() -> None:
        interruption.watch()  # Before the task begins, since a signal may arrive at once.
        interruption.task = Deferred.fromCoroutine(task(reactor)).addBoth(ended)

    collect_garbage()
    reactor.callWhenRunning(start)
    reactor.run()
    if not outcome:  # Otherwise Twisted's own handler has stopped the reactor while it started.
        raise InterruptedBySignal(signal.SIGTERM)
    (result,) = outcome
    if isinstance(result, Failure):
        if interruption.number is not None and isinstance(result.value, TwistedCancelled):
            raise InterruptedBySignal(interruption.number)
        result.raiseException()
    answer: T = result
    return answer


class _Interruption:
    """Turns the first signal into a cancellation and the second into the end of the process."""

    def __init__(self, reactor: Any, drain_s: float) -> None:  # noqa: ANN401 - Twisted's reactors have no common type
        self._reactor = reactor
        self._drain_s = drain_s
        self.number: int | None = None
        self.task: Deferred[None] | None = None

    def watch(self) -> None:
        def interrupt(number: int, frame: object) -> None:
            if self.number is not None:
                if self._drain_s and number == signal.SIGTERM:
                    return  # A supervisor may repeat SIGTERM unaware; Ctrl-C is the way not to wait.
                os._exit(130)
            self.number = number
            self._reactor.callFromThread(self._cancel)
            self._reactor.callFromThread(self._reactor.callLater, self._drain_s + CLEAN_UP_S, os._exit, 130)

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, interrupt)

    def _cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()


def _begin_logging(observer: ILogObserver | None) -> None:
    observers = [] if observer is None else [observer]
    if not observers and os.environ.get("GRID_DEBUG") == "1":
        observers.append(textFileLogObserver(sys.stderr))
    globalLogBeginner.beginLoggingTo(observers, discardBuffer=True, redirectStandardIO=False)
