"""The loop that runs every plan: it carries out requests, feeds back the answers, and decides nothing.

A plan is resumed only in a later turn of the event loop, never inside a finishing answer: a Deferred
fires its callbacks synchronously, and a plan resumed there would be entered twice. All answers that have come
by then are fed in the same turn, so that a plan sees the whole picture before it requests more.

It also notes in the client's memory of servers what each answer, failure and silence shows, in the same way for every plan.
Silence counts from the moment a plan stops waiting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from twisted.internet.defer import Deferred, DeferredList
from twisted.logger import Logger

from grid.engine.grid import Grid
from grid.engine.plan import Plan, R, T_co
from grid.engine.server_memory import ServerMemory
from grid.errors import GridError, PeerError, PeerGoneError, PeerTimeoutError
from grid.ports import Clock, Event, Observer, Timer
from grid.runtime import Tasks

LINGER_S = 2.0
"""How long a finished plan's parting requests (corruption reports, aborts) may take before they are canceled."""

HELD_UP_S = 0.02
MOST_HELD_UP_S = 0.25
"""An alarm that rings this late shows that this process was held up. The plan then waits as long again, up to the maximum, so
that answers already received are read first; otherwise all of them would seem late."""

log = Logger()


T = TypeVar("T")

Perform = Callable[[R], Awaitable[Any]]


async def drive(plan: Plan[R, T], perform: Perform[R], grid: Grid) -> T:
    """Run a plan to its end and return its result.

    perform: carries out one request; its GridErrors go to the plan. Any other error of a request that a server
    answers becomes a PeerError, because a peer may provoke anything. Such an error of a local request is a bug, and ends the run.
    """
    return await _Loop(plan, perform, grid.runtime.clock, grid.observer, grid.memory).run()


class SettlingPlan(Plan[R, T_co], Protocol):
    """A plan whose result its caller can use before the last answers have come."""

    @property
    def is_settled(self) -> bool:
        """Whether result() may be called already, because further answers change nothing that the caller needs."""


class RestOfRuns:
    """The runs whose callers have their results, and that still take the last answers.

    The grid that they run on owns them. Code that closes its connections cancels them first, so that no server counts
    as lost for that.
    """

    def __init__(self) -> None:
        self._tasks = Tasks()

    def start(
        self, run: Coroutine[Any, Any, T], ended: Callable[[T], None], failed: Callable[[BaseException], None]
    ) -> Deferred[None]:
        """Let a run continue until it ends or all are canceled."""
        return self._tasks.start(run, ended, failed)

    def cancel(self) -> None:
        """Stop taking answers."""
        self._tasks.cancel()


async def drive_until_settled(
    plan: SettlingPlan[R, T], perform: Perform[R], grid: Grid, on_rest: Callable[[T | None], None]
) -> T:
    """Like drive, but returns the result as soon as the plan is settled; the run continues in the background.

    on_rest: called when the run is over, with its result if the caller got an earlier one, otherwise with None.
    """
    first: Deferred[T] = Deferred(lambda _: task.cancel())
    clock = grid.runtime.clock

    def settle(result: T) -> None:
        if not first.called:
            first.callback(result)

    def end(result: T) -> None:
        on_rest(result if first.called else None)
        settle(result)

    def fail(error: BaseException) -> None:
        on_rest(None)
        if not first.called:
            first.errback(error)

    # In a turn of its own: the caller continues at once, and the loop must not be entered from inside.
    loop = _Loop(
        plan,
        perform,
        clock,
        grid.observer,
        grid.memory,
        is_settled=lambda: plan.is_settled,
        on_settled=lambda result: clock.call_later(0, partial(settle, result)),
    )
    task = grid.remembered.of(RestOfRuns).start(loop.run(), end, fail)
    return await first


class _Loop(Generic[R, T]):
    def __init__(
        self,
        plan: Plan[R, T],
        perform: Perform[R],
        clock: Clock,
        observer: Observer,
        memory: ServerMemory,
        *,
        is_settled: Callable[[], bool] = lambda: False,
        on_settled: Callable[[T], object] = lambda _: None,
    ) -> None:
        """on_settled gets the current result once is_settled is true for the first time."""
        self._plan = plan
        self._perform = perform
        self._clock = clock
        self._observer = observer
        self._memory = memory
        self._sent_at: dict[R, float] = {}
        self._slowest_s = 0.0
        self._outstanding: dict[R, Deferred[None]] = {}
        self._tasks = Tasks()
        self._inbox: deque[tuple[R, object, BaseException | None]] = deque()
        self._waiter: Deferred[None] | None = None
        self._waking: Timer | None = None
        self._request_count = 0
        self._settling: tuple[Callable[[], bool], Callable[[T], object]] | None = is_settled, on_settled

    async def run(self) -> T:
        try:
            while not self._turn():
                self._settle()
                await self._wait()
            await self._linger()
        finally:
            self._tasks.cancel()
        return self._plan.result()

    def _settle(self) -> None:
        """Pass on the result, once it is settled."""
        if self._settling is not None:
            is_settled, on_settled = self._settling
            if is_settled():
                on_settled(self._plan.result())
                self._settling = None

    def _turn(self) -> bool:
        """Feed all answers, and send what the plan wants. Returns whether the plan is finished."""
        now = self._clock.now()
        while self._inbox:
            request, answer, error = self._inbox.popleft()
            if self._outstanding.pop(request, None) is not None:
                self._feed(request, answer, error, now)
                self._withdraw_all(now)  # Otherwise the plan could still get their answers from the rest of the inbox.
        for request in self._plan.advance(now):
            self._send(request, now)
        self._withdraw_all(now)
        for event in self._plan.take_events():
            self._observer(event)
        return self._plan.finished

    def _feed(self, request: R, answer: object, error: BaseException | None, now: float) -> None:
        self._remember(request, error, now)
        if error is None:
            self._tell("answer", request, now)
            self._plan.answer(request, answer, now)
            return
        if not isinstance(error, GridError):
            if request.server_id is None or not isinstance(error, Exception):
                raise error
            log.warn("unexpected {kind} from a server: {error}", kind=type(error).__name__, error=str(error)[:500])
            error = PeerError(f"server {request.server_id} answered out of order ({type(error).__name__})")
        self._tell("fail", request, now, type(error).__name__)
        self._plan.fail(request, error, now)

    def _remember(self, request: R, error: BaseException | None, now: float) -> None:
        """Note in the memory what the end of a request shows about its server."""
        sent_at = self._sent_at.pop(request, now)
        if request.server_id is None:
            return
        kind = request.memory_kind
        if isinstance(error, PeerTimeoutError):
            self._memory.silent(request.server_id, kind, now, sent_at)
        elif isinstance(error, PeerGoneError) or (error is not None and not isinstance(error, GridError)):
            self._memory.failed(request.server_id, kind, now)
        else:
            self._slowest_s = max(self._slowest_s, now - sent_at)
            self._memory.answered(request.server_id, kind, now)

    def _stop_waiting(self, request: R, now: float) -> None:
        """Note in the memory a request that is no longer waited for."""
        sent_at = self._sent_at.pop(request, now)
        server_id, kind = request.server_id, request.memory_kind
        if server_id is None:
            return
        if request.is_late:
            self._memory.silent(server_id, kind, now, sent_at)
        else:
            self._memory.abandoned(server_id, kind, request.size, sent_at, self._slowest_s, now)

    def _send(self, request: R, now: float) -> None:
        request.index = self._request_count
        self._sent_at[request] = now
        self._request_count += 1
        self._tell("send", request, now)

        async def body() -> object:
            return await self._perform(request)

        placeholder: Deferred[None] = Deferred()
        self._outstanding[request] = placeholder
        task = self._tasks.start(
            body(),
            lambda answer: self._arrived(request, answer, None),
            lambda error: self._arrived(request, None, error),
        )
        self._outstanding[request] = task

    def _withdraw_all(self, now: float) -> None:
        for request in self._plan.withdrawn():
            task = self._outstanding.pop(request, None)
            if task is not None:
                self._tell("cancel", request, now)
                self._stop_waiting(request, now)
                task.cancel()

    def _arrived(self, request: R, answer: object, error: BaseException | None) -> None:
        self._inbox.append((request, answer, error))
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and self._waking is None:
            self._waking = self._clock.call_later(0, self._resume)

    def _resume(self) -> None:
        waiter, self._waiter, self._waking = self._waiter, None, None
        if waiter is not None:
            waiter.callback(None)

    async def _wait(self) -> None:
        self._waiter = Deferred()
        wake_at = self._plan.wake_at()
        timers: list[Timer] = []
        if self._inbox:
            self._wake()
        elif wake_at is not None:
            self._set_alarm(wake_at, timers)
        elif not self._outstanding:
            raise RuntimeError(f"{type(self._plan).__name__} waits for nothing and is not finished")
        try:
            await self._waiter
        finally:
            self._waiter = None
            for timer in (*timers, self._waking):
                if timer is not None:
                    timer.cancel()
            self._waking = None

    def _set_alarm(self, wake_at: float, timers: list[Timer]) -> None:
        """Wake the plan at that time, or a little later if this process was held up. timers: gets the timers to cancel."""
        due = max(wake_at, self._clock.now())

        def ring() -> None:
            held_up_s = self._clock.now() - due
            if held_up_s > HELD_UP_S:
                timers.append(self._clock.call_later(min(held_up_s, MOST_HELD_UP_S), self._wake))
            else:
                self._wake()

        timers.append(self._clock.call_later(due - self._clock.now(), ring))

    async def _linger(self) -> None:
        """Let parting requests end, within LINGER_S; cancel all others.

        A server that was silent on such requests before is sent them, but not waited for.
        """
        outstanding, self._outstanding = self._outstanding, {}
        now = self._clock.now()
        parting: dict[R, Deferred[None]] = {}
        for request, task in outstanding.items():
            if request.parting and not self._is_doubtful(request):
                parting[request] = task
            elif not request.parting:
                self._stop_waiting(request, now)
                task.cancel()
        waiting = [task for task in parting.values() if not task.called]
        if waiting:
            await self._wait_for(waiting)
        now = self._clock.now()
        for request, _, error in self._inbox:
            if parting.pop(request, None) is not None:
                self._remember(request, error, now)
        for request in parting:
            self._stop_waiting(request, now)

    def _is_doubtful(self, request: R) -> bool:
        server_id = request.server_id
        return server_id is not None and self._memory.is_doubtful(server_id, request.memory_kind)

    async def _wait_for(self, tasks: Sequence[Deferred[None]]) -> None:
        """Wait until they have ended, for at most LINGER_S."""
        over: Deferred[None] = Deferred()

        def end(_: object = None) -> None:
            if not over.called:
                over.callback(None)

        DeferredList(tasks).addCallback(end)
        alarm = self._clock.call_later(LINGER_S, end)
        try:
            await over
        finally:
            alarm.cancel()

    def _tell(self, what: str, request: R, now: float, detail: str = "") -> None:
        self._observer(
            Event(
                at=now,
                what=what,
                detail=detail or type(request).__name__,
                server_id=request.server_id,
                share_numbers=request.share_numbers,
                count=request.size,
                request_index=request.index,
            )
        )
