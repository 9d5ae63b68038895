"""The real clock, processor pool and entropy, and tasks that have owners.

It owns the threads. It takes the reactor as an argument and never imports one; tests hand in theirs.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from attrs import define, frozen
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.python import log as legacy_log
from twisted.python.failure import Failure

from grid.errors import BusyError
from grid.ports import Clock, CpuPool, Entropy, Timer

T = TypeVar("T")

_Job = tuple[Deferred[Any], Callable[..., Any], tuple[object, ...]]


@define
class _ReactorTimer:
    _call: Any

    def cancel(self) -> None:
        if self._call.active():
            self._call.cancel()


KEPT_MEMORY = 32 * 2**20
"""Bytes of freed memory that a process keeps: several batches of what one operation works on."""

_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_ARENA_MAX = -8
"""The numbers that glibc's mallopt knows these by."""


_ALLOCATOR_COUNTS = [
    "arena",
    "ordblks",
    "smblks",
    "hblks",
    "hblkhd",
    "usmblks",
    "fsmblks",
    "uordblks",
    "fordblks",
    "keepcost",
]
"""The fields of glibc's struct mallinfo2; fordblks is what is free."""


class ReactorClock:
    """Monotonic and Unix time, with calls made by a reactor."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor

    def now(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    def unix_time(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def call_later(self, delay_s: float, function: Callable[[], None]) -> Timer:
        """Call the function in a later turn of the reactor."""
        return _ReactorTimer(self._reactor.callLater(max(0.0, delay_s), function))

    async def sleep(self, delay_s: float) -> None:
        """Return after delay_s seconds; cancelling the task that waits cancels the timer."""
        await _pause(self, delay_s)


def use_monotonic_time(reactor: Any) -> None:
    """Have the timers of a reactor go by the monotonic clock: Twisted's go by the system's time, which stops them
    all for an hour when it is set back by one. One that has timers already keeps its clock.
    """
    if not reactor.getDelayedCalls():
        reactor.seconds = time.monotonic


def _pause(clock: Clock, delay_s: float) -> Deferred[None]:
    timer: list[Timer] = []
    pause: Deferred[None] = Deferred(lambda _: timer[0].cancel())
    timer.append(clock.call_later(delay_s, lambda: pause.callback(None)))
    return pause


class ThreadCpuPool:
    """A pool of its own threads, apart from the reactor's, started as calls come that no thread is free for."""

    def __init__(self, reactor: Any, width: int | None = None) -> None:
        """width: threads; as many as there are processors, at least 2 so that a wait for a disk blocks no hash."""
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
        """Call the function on a pool thread. A call that waits in the queue is not taken back by a cancellation.

        The call fails with BusyError if the system gives us no thread at all.
        """
        answer: Deferred[T] = Deferred()
        if len(self._threads) < min(self._unanswered + 1, self._width) and not self._start_thread():
            answer.errback(BusyError("the system starts no more threads: stop other programs, or raise its limit"))
            return answer
        self._unanswered += 1
        self._jobs.put((answer, function, arguments))
        return answer

    def _start_thread(self) -> bool:
        """Start one more thread if that is possible; whether there is any."""
        thread = Thread(target=self._work, args=(self._jobs,), name="grid-cpu", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return bool(self._threads)  # Those that run do the work of all.
        self._threads.append(thread)
        return True

    def stop(self) -> None:
        """End the threads once the calls made so far are done; the next call would start new ones."""
        threads, self._threads = self._threads, []
        jobs, self._jobs = self._jobs, SimpleQueue()
        for _ in threads:
            jobs.put(None)
        for thread in threads:
            thread.join()

    def _work(self, jobs: SimpleQueue[_Job | None]) -> None:
        """What each thread does: a job after the other, with nothing of the last one kept while it waits."""
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
        self._is_waking = False  # Before the queue is looked at, so that what comes later wakes the reactor again.
        while self._done:
            answer, outcome = self._done.popleft()
            self._unanswered -= 1
            if isinstance(outcome, Failure):
                answer.errback(outcome)
            else:
                answer.callback(outcome)


SMALL_WORK = 256
"""Items of a list that are worked on at once where everybody waits for it: a few milliseconds."""


async def run_sized(cpu: CpuPool, size: int, function: Callable[..., T], *arguments: object) -> T:
    """What the function returns, called on the pool if the size of its work, in items, is no small one."""
    return function(*arguments) if size <= SMALL_WORK else await cpu.run(function, *arguments)


class SystemEntropy:
    """The operating system's entropy."""

    def random_bytes(self, count: int) -> bytes:
        """That many unpredictable bytes."""
        return os.urandom(count)


@frozen(kw_only=True)
class RealRuntime:
    """Clock, processor pool and entropy of one process."""

    clock: Clock
    cpu: CpuPool
    entropy: Entropy


def keep_freed_memory() -> None:
    """Let the allocator of glibc keep what was freed, up to KEPT_MEMORY, instead of giving it back to the kernel.

    Every batch takes megabytes and frees them; obtained from the kernel each time, they cost a page fault per 4 KiB,
    a tenth of all processor time of a put. All threads take from one arena: by itself each would have its own, and
    keep there what the others could use. To be called before there are threads. Elsewhere than on glibc nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, KEPT_MEMORY // 2)
    mallopt(_TRIM_THRESHOLD, KEPT_MEMORY)
    mallopt(_ARENA_MAX, 1)


EXCESS_MEMORY = 20 * 2**20
"""Freed bytes in the allocator from which on giving them back is worth its time."""


class _AllocatorState(ctypes.Structure):
    """What glibc's mallinfo2 answers."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _ALLOCATOR_COUNTS)


def return_freed_memory() -> None:
    """Give the kernel back what the allocator of glibc keeps of freed memory, if it is much. Elsewhere nothing happens.

    What is freed in the middle of other memory stays resident otherwise. It takes some milliseconds, and later page faults.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallinfo2.restype = _AllocatorState
        if library.mallinfo2().fordblks >= EXCESS_MEMORY:
            library.malloc_trim(0)


class _PlainCalls:
    """twisted.python.log for an event loop that calls its sockets without a logging context of their own."""

    def callWithLogger(  # noqa: N802 - the name is Twisted's
        self, owner: object, function: Callable[..., object], *args: Any, **kwargs: Any
    ) -> object:
        """What the function returns; it logs by itself what goes wrong with a socket."""
        del owner
        return function(*args, **kwargs)


def skip_log_contexts() -> None:
    """Have the event loop of Linux call sockets without noting in a context whose event it is, for messages of Twisted's old log.

    That was an eighth of what a storage node's interpreter did for small messages. Other event loops stay as they are.
    """
    try:
        from twisted.internet import epollreactor
    except ImportError:
        return
    if getattr(epollreactor, "log", None) is legacy_log:
        setattr(epollreactor, "log", _PlainCalls())  # noqa: B010 - it is no public name


def make_runtime(reactor: Any, width: int | None = None) -> RealRuntime:
    """The runtime of a process that runs this reactor; its pool ends with the reactor."""
    keep_freed_memory()
    skip_log_contexts()
    pool = ThreadCpuPool(reactor, width)
    reactor.addSystemEventTrigger("during", "shutdown", pool.stop)
    return RealRuntime(clock=ReactorClock(reactor), cpu=pool, entropy=SystemEntropy())


class Tasks:
    """The tasks of one owner, which awaits or cancels them all."""

    def __init__(self) -> None:
        self._running: set[Deferred[None]] = set()

    @property
    def count(self) -> int:
        """Tasks still running."""
        return len(self._running)

    def start(
        self,
        coroutine: Coroutine[Any, Any, T],
        on_result: Callable[[T], None] = lambda _: None,
        on_error: Callable[[BaseException], None] = lambda _: None,
    ) -> Deferred[None]:
        """Start the task now; one of the two is called when it ends, on_error with CancelledError when cancelled."""
        task: Deferred[None] = Deferred.fromCoroutine(coroutine).addCallback(on_result)
        self._running.add(task)

        def ended(outcome: object) -> None:
            self._running.discard(task)
            if isinstance(outcome, Failure):
                on_error(outcome.value)  # type: ignore[arg-type]

        task.addBoth(ended)
        return task

    def cancel(self) -> None:
        """Cancel them all; each one's on_error hears CancelledError if it does not end otherwise."""
        for task in list(self._running):
            task.cancel()

    async def wait(self) -> None:
        """Return when all that run now have ended; never raises what they raised."""
        await DeferredList(list(self._running))


def is_cancellation(error: BaseException) -> bool:
    """Whether a task ended because its owner cancelled it."""
    return isinstance(error, CancelledError)


async def with_deadline(clock: Clock, awaitable: Awaitable[T], seconds: float, error: Callable[[], Exception]) -> T:
    """The awaitable's result, or error() raised and the awaitable cancelled when it takes longer."""

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
