"""Runs one coroutine on the reactor, from its start to its end, and stops as soon as it has ended.

Ctrl-C and SIGTERM cancel the coroutine, whose `finally` blocks still run (an upload takes its shares back);
a second one ends the process at once.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError as TwistedCancelled
from twisted.internet.defer import Deferred
from twisted.logger import globalLogBeginner, textFileLogObserver
from twisted.python.failure import Failure

from grid.errors import CancelledError

T = TypeVar("T")

_CLEAN_UP_S = 10.0
"""How long an interrupted command may take to clean up."""


def run_task(task: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
    """The coroutine's result, or its error raised; CancelledError if a signal ended it. Once per process.

    task: takes the reactor and makes the coroutine.
    """
    from twisted.internet import reactor as global_reactor

    reactor: Any = global_reactor
    begin_logging()
    outcome: list[Any] = []
    interruption = _Interruption(reactor)

    def ended(result: object) -> None:
        outcome.append(result)
        if reactor.running:
            reactor.stop()

    def start() -> None:
        interruption.watch(Deferred.fromCoroutine(task(reactor)).addBoth(ended))

    reactor.callWhenRunning(start)
    reactor.run()
    if interruption.happened:
        raise CancelledError("interrupted")
    (result,) = outcome
    if isinstance(result, Failure):
        if isinstance(result.value, TwistedCancelled):
            raise CancelledError("interrupted")
        result.raiseException()
    answer: T = result
    return answer


class _Interruption:
    """Turns the first signal into a cancellation, the second into the end of the process."""

    def __init__(self, reactor: Any) -> None:  # noqa: ANN401 - Twisted's reactor is a module of many faces
        self._reactor = reactor
        self.happened = False

    def watch(self, task: Deferred[None]) -> None:
        if task.called:
            return

        def interrupt(number: int, frame: object) -> None:
            if self.happened:
                os._exit(130)
            self.happened = True
            self._reactor.callFromThread(task.cancel)
            self._reactor.callFromThread(self._reactor.callLater, _CLEAN_UP_S, os._exit, 130)

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, interrupt)


def begin_logging() -> None:
    """Take the log away from the terminal; with GRID_DEBUG=1 it goes to stderr."""
    observers = [textFileLogObserver(sys.stderr)] if os.environ.get("GRID_DEBUG") == "1" else []
    globalLogBeginner.beginLoggingTo(observers, discardBuffer=True, redirectStandardIO=False)
