"""The reactor for programs that do not run it themselves: in a thread of its own, from first use to the end of the process.

It owns that thread, and calls from other threads to coroutines on it. A reactor cannot be started twice, so
closing a grid leaves it running and idle. When it stops for any reason, every waiting call ends too.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError as CancelledByTwisted
from twisted.internet.defer import Deferred
from twisted.internet.error import ReactorNotRestartable
from twisted.python import threadable
from twisted.python.failure import Failure

from grid.runtime import use_monotonic_time

T = TypeVar("T")

_lock = Lock()
_pending: set[Future[Any]] = set()
"""Running calls, to be ended with the reactor."""
_watched: list[Any] = []
"""The reactor, once its end is being watched for."""
_ended: list[Any] = []
"""The reactor, once it has ended."""
STOP_S = 5.0
"""How long the end of the process waits for the reactor to stop."""


def running_reactor() -> Any:  # noqa: ANN401 - reactors are many
    """The reactor, started in its own thread if it is not running; RuntimeError on the reactor's thread, and after it has stopped."""
    from twisted.internet import reactor as global_reactor

    reactor: Any = global_reactor
    with _lock:
        if reactor in _ended:
            raise _over()
        if not reactor.running:
            _watch(reactor)
            _start(reactor)
        elif threadable.isInIOThread():
            raise RuntimeError(
                "this thread runs the reactor, which a blocking call would stop: use grid.open_asyncio or"
                " grid.open_twisted here"
            )
        else:
            reactor.callFromThread(_watch, reactor)
    return reactor


def submit(reactor: Any, coroutine: Coroutine[Any, Any, T]) -> Future[T]:  # noqa: ANN401
    """Run the coroutine on the reactor's thread; canceling the future cancels it. RuntimeError if the reactor stops first."""
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
            pass  # Canceled by its owner meanwhile.

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
    if _expect(reactor, future):
        reactor.callFromThread(begin)
    else:
        coroutine.close()
        future.set_exception(_over())
    return future


def _expect(reactor: Any, future: Future[Any]) -> bool:  # noqa: ANN401
    """Whether the reactor can still run it. If so, it ends with the reactor at the latest."""
    with _lock:
        if reactor in _ended:
            return False
        _pending.add(future)
    future.add_done_callback(_pending.discard)
    return True


def wait(reactor: Any, make: Callable[[], Coroutine[Any, Any, T]]) -> T:  # noqa: ANN401
    """Run the coroutine and return its result, on any thread but the reactor's. An interrupted wait cancels it."""
    if threadable.isInIOThread():
        raise RuntimeError("this thread runs the reactor, which a blocking call would stop")
    future = submit(reactor, make())
    try:
        return future.result()
    except CancelledError:
        raise
    except BaseException:
        future.cancel()
        raise


def _start(reactor: Any) -> None:  # noqa: ANN401
    use_monotonic_time(reactor)
    started = Event()
    reactor.callWhenRunning(started.set)
    thread = Thread(target=_run, args=(reactor, started), name="grid-reactor", daemon=True)
    thread.start()
    started.wait()
    if reactor in _ended:
        raise _over()

    def stop() -> None:
        if thread.is_alive():
            reactor.callFromThread(reactor.stop)
            thread.join(STOP_S)

    atexit.register(stop)


def _run(reactor: Any, started: Event) -> None:  # noqa: ANN401
    before = threadable.ioThread
    threadable.registerAsIOThread()
    try:
        reactor.run(installSignalHandlers=False)
    except ReactorNotRestartable:
        threadable.ioThread = before
        _ended.append(reactor)
        started.set()


def _watch(reactor: Any) -> None:  # noqa: ANN401
    if reactor not in _watched:
        _watched.append(reactor)
        reactor.addSystemEventTrigger("after", "shutdown", _end, reactor)


def _end(reactor: Any) -> None:  # noqa: ANN401
    with _lock:
        _ended.append(reactor)
        pending = list(_pending)
    for future in pending:
        with suppress(InvalidStateError):  # Its coroutine or its owner was faster.
            future.set_exception(_over())


def _over() -> RuntimeError:
    return RuntimeError(
        "the reactor of this process has ended, and cannot be started twice: use the grid before it ends, or in a new process"
    )
