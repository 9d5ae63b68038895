"""The real clock, processor pool and entropy, and tasks with owners.

It owns the threads. It takes the reactor as an argument and never imports one; tests pass their own.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar

from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.python import log as legacy_log
from twisted.python.failure import Failure

from grid.allocator import keep_freed_memory
from grid.errors import BusyError
from grid.ports import Clock, CpuPool, Entropy, Timer
from grid.values import define, frozen

T = TypeVar("T")

_Job = tuple[Deferred[Any], Callable[..., Any], tuple[object, ...]]


@define
class _ReactorTimer:
    _call: Any

    def cancel(self) -> None:
        if self._call.active():
            self._call.cancel()


class ReactorClock:
    """Monotonic and Unix time, with calls scheduled by a reactor."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor

    now = staticmethod(time.monotonic)
    """Monotonic seconds. Asked for so often that the call of a method would count."""

    def unix_time(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def call_later(self, delay_s: float, function: Callable[[], None]) -> Timer:
        """Call the function in a later turn of the reactor."""
        return _ReactorTimer(self._reactor.callLater(max(0.0, delay_s), function))

    async def sleep(self, delay_s: float) -> None:
        """Return after delay_s seconds; canceling the waiting task cancels the timer."""
        await _pause(self, delay_s)


def use_monotonic_time(reactor: Any) -> None:
    """Make a reactor's timers use the monotonic clock. Twisted's own use the system time, which stops all of them
    for an hour when it is set back by one. A reactor that has timers already keeps its clock.
    """
    if not reactor.getDelayedCalls():
        reactor.seconds = time.monotonic


def _pause(clock: Clock, delay_s: float) -> Deferred[None]:
    timer: list[Timer] = []
    pause: Deferred[None] = Deferred(lambda _: timer[0].cancel())
    timer.append(clock.call_later(delay_s, lambda: pause.callback(None)))
    return pause


class ThreadCpuPool:
    """A pool of threads separate from the reactor's. Threads start when a call comes and none is free."""

    def __init__(self, reactor: Any, width: int | None = None) -> None:
        """width: number of threads; by default the number of processors, at least 2, so that a wait for a disk blocks no hashing."""
        self._reactor = reactor
        self._width = width or max(2, os.cpu_count() or 1)
        self._threads: list[Thread] = []
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._done: deque[tuple[Deferred[Any], Any]] = deque()
        self._unanswered = 0
        self._is_waking = False

    @property
    def width(self) -> int:
        """How many calls run at once."""
        return self._width

    def run(self, function: Callable[..., T], *arguments: object) -> Awaitable[T]:
        """Call the function on a pool thread. Canceling does not remove a call from the queue.

        The call fails with BusyError if the system provides no thread at all.
        """
        answer: Deferred[T] = Deferred()
        if len(self._threads) < min(self._unanswered + 1, self._width) and not self._start_thread():
            answer.errback(BusyError("the system starts no more threads: stop other programs, or raise its limit"))
            return answer
        self._unanswered += 1
        self._jobs.put((answer, function, arguments))
        return answer

    def _start_thread(self) -> bool:
        """Start one more thread if possible. Returns whether the pool has any."""
        thread = Thread(target=self._work, args=(self._jobs,), name="grid-cpu", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return bool(self._threads)  # The running threads do all the work.
        self._threads.append(thread)
        return True

    def stop(self) -> None:
        """Stop the threads once all earlier calls are done. A later call would start new ones."""
        threads, self._threads = self._threads, []
        jobs, self._jobs = self._jobs, SimpleQueue()
        for _ in threads:
            jobs.put(None)
        for thread in threads:
            thread.join()

    def _work(self, jobs: SimpleQueue[_Job | None]) -> None:
        """The main loop of a thread: one job after the other. It keeps nothing of a job while it waits for the next."""
        while (job := jobs.get()) is not None:
            answer, function, arguments = job
            try:
                outcome = function(*arguments)
            except BaseException:  # noqa: BLE001 - whatever it is, the waiting caller gets it
                outcome = Failure()
            self._done.append((answer, outcome))
            del job, answer, function, arguments, outcome
            if not self._is_waking:
                self._is_waking = True
                self._reactor.callFromThread(self._answer)

    def _answer(self) -> None:
        self._is_waking = False  # Before the queue is read, so that later entries wake the reactor again.
        while self._done:
            answer, outcome = self._done.popleft()
            self._unanswered -= 1
            if isinstance(outcome, Failure):
                answer.errback(outcome)
            else:
                answer.callback(outcome)


SMALL_WORK = 256
"""A list of up to this many items is processed on the event loop: a few milliseconds."""


async def run_sized(cpu: CpuPool, size: int, function: Callable[..., T], *arguments: object) -> T:
    """Call the function and return its result; on the pool, unless its work (in items) is small."""
    return function(*arguments) if size <= SMALL_WORK else await cpu.run(function, *arguments)


class SystemEntropy:
    """The operating system's entropy."""

    def random_bytes(self, count: int) -> bytes:
        """That many unpredictable bytes."""
        return os.urandom(count)


@frozen(kw_only=True)
class RealRuntime:
    """The clock, processor pool and entropy of one process."""

    clock: Clock
    cpu: CpuPool
    entropy: Entropy


def collect_garbage() -> None:
    """Turn on Python's garbage collector, which commands turn off while they import. What exists by now is not scanned again."""
    gc.freeze()
    gc.enable()


_PR_SET_DUMPABLE = 4
"""The option's number in Linux's prctl."""


def forbid_core_dumps() -> None:
    """Prevent core dumps of this process, whether to a file or to a program that collects them.

    The resource limit alone does not apply where crashes are piped to such a program. From then on, other processes of
    the same user cannot attach to this one; root still can.
    """
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


class _PlainCalls:
    """Replaces twisted.python.log for an event loop, so that it calls its sockets without logging contexts."""

    def callWithLogger(  # noqa: N802 - the name is Twisted's
        self, owner: object, function: Callable[..., object], *args: Any, **kwargs: Any
    ) -> object:
        """Call the function and return its result; errors of a socket are logged by the function itself."""
        del owner
        return function(*args, **kwargs)


def skip_log_contexts() -> None:
    """Make Linux's event loop call sockets without a logging context, which only messages of Twisted's old log use.

    It was an eighth of the interpreter's work on small messages in a storage node. Other event loops are not changed.
    """
    try:
        from twisted.internet import epollreactor
    except ImportError:
        return
    if getattr(epollreactor, "log", None) is legacy_log:
        setattr(epollreactor, "log", _PlainCalls())  # noqa: B010 - it is no public name


def make_runtime(reactor: Any, width: int | None = None) -> RealRuntime:
    """The runtime of a process that runs this reactor. Its pool stops with the reactor."""
    keep_freed_memory()
    skip_log_contexts()
    pool = ThreadCpuPool(reactor, width)
    reactor.addSystemEventTrigger("during", "shutdown", pool.stop)
    return RealRuntime(clock=ReactorClock(reactor), cpu=pool, entropy=SystemEntropy())


class Tasks:
    """The tasks of one owner, which awaits or cancels all of them."""

    def __init__(self) -> None:
        self._running: set[Deferred[None]] = set()

    @property
    def count(self) -> int:
        """Number of running tasks."""
        return len(self._running)

    def start(
        self,
        coroutine: Coroutine[Any, Any, T],
        on_result: Callable[[T], None] = lambda _: None,
        on_error: Callable[[BaseException], None] = lambda _: None,
    ) -> Deferred[None]:
        """Start the task now. When it ends, one of the two is called; on_error with CancelledError if it was canceled."""
        task: Deferred[None] = Deferred.fromCoroutine(coroutine).addCallback(on_result)
        self._running.add(task)

        def ended(outcome: object) -> None:
            self._running.discard(task)
            if isinstance(outcome, Failure):
                on_error(outcome.value)  # type: ignore[arg-type]

        task.addBoth(ended)
        return task

    def cancel(self) -> None:
        """Cancel all tasks. Each one's on_error gets CancelledError, unless the task ends otherwise."""
        for task in list(self._running):
            task.cancel()

    async def wait(self) -> None:
        """Return when all current tasks have ended; never raises their errors."""
        await DeferredList(list(self._running))


class Begun(Generic[T]):
    """Work that begins before it is known whether its result is needed. The tasks' owner ends it if nobody else does."""

    def __init__(self, work: Coroutine[Any, Any, T], tasks: Tasks) -> None:
        self._over: Deferred[None] = Deferred()
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._task = tasks.start(work, self._succeed, self._fail)

    async def result(self) -> T:
        """Wait for the result; raises the errors of the work."""
        await self._over
        if self._error is not None:
            raise self._error
        return self._results[0]

    def cancel(self) -> None:
        """Give up the work."""
        self._task.cancel()

    def _succeed(self, result: T) -> None:
        self._results.append(result)
        self._over.callback(None)

    def _fail(self, error: BaseException) -> None:
        self._error = error
        self._over.callback(None)


def is_cancellation(error: BaseException) -> bool:
    """Whether a task ended because its owner canceled it."""
    return isinstance(error, CancelledError)


async def with_deadline(clock: Clock, awaitable: Awaitable[T], seconds: float, error: Callable[[], Exception]) -> T:
    """Await with a time limit: when it passes, cancel the awaitable and raise error()."""

    async def body() -> T:
        return await awaitable

    task = Deferred.fromCoroutine(body())
    late: list[bool] = []

    def expire() -> None:
        late.append(True)
        task.cancel()

    timer = clock.call_later(seconds, expire)
    try:
        return await task
    except CancelledError:
        if late:
            raise error() from None
        raise
    finally:
        timer.cancel()
