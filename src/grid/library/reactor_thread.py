"""The reactor for programs that do not run it themselves: in a thread of its own, from the first use to the end of the process.

It owns that thread, and the way from other threads to coroutines on it. A reactor cannot be started twice, so that
closing a grid leaves it running, without anything to do.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, InvalidStateError
from threading import Event, Lock, Thread
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError as CancelledByTwisted
from twisted.internet.defer import Deferred
from twisted.python import threadable
from twisted.python.failure import Failure

T = TypeVar("T")

_lock = Lock()
STOP_S = 5.0
"""How long the end of the process waits for the reactor."""


def running_reactor() -> Any:  # noqa: ANN401 - reactors are many
    """The reactor, started in a thread of its own unless it runs; RuntimeError on the reactor's own thread."""
    from twisted.internet import reactor as global_reactor

    reactor: Any = global_reactor
    with _lock:
        if not reactor.running:
            _start(reactor)
        elif threadable.isInIOThread():
            raise RuntimeError(
                "this thread runs the reactor, which a call that waits would stop: use grid.open_asyncio or"
                " grid.open_twisted here"
            )
    return reactor


def submit(reactor: Any, coroutine: Coroutine[Any, Any, T]) -> Future[T]:  # noqa: ANN401
    """Run the coroutine on the reactor's thread; cancelling the future cancels it."""
    future: Future[T] = Future()
    task: list[Deferred[T]] = []

    def ended(outcome: T | Failure) -> None:
        try:
            if not isinstance(outcome, Failure):
                future.set_result(outcome)
            elif outcome.check(CancelledByTwisted):
                future.cancel()
            else:
                future.set_exception(outcome.value)
        except InvalidStateError:
            pass  # Cancelled by its owner meanwhile.

    def begin() -> None:
        if future.cancelled():
            coroutine.close()
            return
        task.append(Deferred.fromCoroutine(coroutine))
        task[0].addBoth(ended)

    def cancel() -> None:
        if task:
            task[0].cancel()

    def done(_: Future[T]) -> None:
        if future.cancelled():
            reactor.callFromThread(cancel)

    future.add_done_callback(done)
    reactor.callFromThread(begin)
    return future


def wait(reactor: Any, make: Callable[[], Coroutine[Any, Any, T]]) -> T:  # noqa: ANN401
    """The coroutine's result, from any thread but the reactor's; an interrupted wait cancels it."""
    if threadable.isInIOThread():
        raise RuntimeError("this thread runs the reactor, which a call that waits would stop")
    future = submit(reactor, make())
    try:
        return future.result()
    except CancelledError:
        raise
    except BaseException:
        future.cancel()
        raise


def _start(reactor: Any) -> None:  # noqa: ANN401
    started = Event()
    reactor.callWhenRunning(started.set)
    thread = Thread(target=_run, args=(reactor,), name="grid-reactor", daemon=True)
    thread.start()
    started.wait()

    def stop() -> None:
        if thread.is_alive():
            reactor.callFromThread(reactor.stop)
            thread.join(STOP_S)

    atexit.register(stop)


def _run(reactor: Any) -> None:  # noqa: ANN401
    threadable.registerAsIOThread()
    reactor.run(installSignalHandlers=False)
