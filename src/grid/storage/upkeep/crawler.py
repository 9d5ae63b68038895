"""Walks slowly over every storage index of a server, in cycles, and resumes after a restart.

It works in slices of about a second, and at most a tenth of the time. [spec storage-server 10.3]
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from grid.errors import GridError
from grid.ports import Clock, Timer
from grid.runtime import Tasks
from grid.storage.calls.service import StorageService
from grid.storage.files.disk import Disk
from grid.storage.files.incoming import create_anew
from grid.storage.files.paths import PREFIXES, SHARES, parse_index_name

SLICE_S = 1.0
WORK_PART = 0.1
LONGEST_SLEEP_S = 299.0
VERSION = 1

State = dict[str, Any]
"""The content of a state file."""

log = Logger()


class CycleTask(Protocol):
    """The work to do during the walk."""

    name: str
    first_delay_s: float
    cycle_s: float
    """Seconds before the first slice after a start, and the least from one cycle's beginning to the next."""

    def is_state(self, state: State) -> bool:
        """Whether the state from a file can be resumed."""

    def begin_cycle(self, state: State) -> None:
        """Begin a cycle."""

    async def visit_prefix(self, state: State, prefix: str, names: Sequence[str]) -> None:
        """Take all storage indexes below the prefix."""

    async def visit(self, state: State, name: str, now: float) -> None:
        """Process one storage index; now: Unix time."""

    async def end_cycle(self, state: State, now: float) -> None:
        """End the cycle."""


class Crawler:
    """One walk, from `start` to `stop`."""

    def __init__(self, service: StorageService, task: CycleTask, clock: Clock) -> None:
        self._service = service
        self._task = task
        self._clock = clock
        self._tasks = Tasks()
        self._state: State = new_state()
        self._slice_began = 0.0
        self._stopping = False
        self._timer: Timer | None = None
        self._pause: Deferred[None] | None = None
        self._made_at = clock.unix_time()
        self._wakes_at = clock.now()
        self._cycle_took_s: float | None = None

    @property
    def state(self) -> State:
        """The current state; do not change it."""
        return self._state

    def progress(self) -> dict[str, Any]:
        """How far the walk is, and when it resumes, under the names that monitors know. [spec webapi 9.4]"""
        now = self._clock.unix_time()
        rest = max(0.0, self._wakes_at - self._clock.now())
        if self._state["current-cycle"] is None:
            return {
                "cycle-in-progress": False,
                "next-crawl-time": now + rest,
                "remaining-wait-time": rest,
                "estimated-time-per-cycle": self._cycle_took_s,
            }
        done = _index_behind(self._state["last-complete-prefix"]) / len(PREFIXES)
        worked = now - self._state["current-cycle-start-time"]
        return {
            "cycle-in-progress": True,
            "cycle-complete-percentage": 100 * done,
            "remaining-sleep-time": rest,
            "estimated-cycle-complete-time-left": worked * (1 - done) / done if done else None,
            "estimated-time-per-cycle": worked / done if done else self._cycle_took_s,
        }

    def shown_state(self) -> State:
        """The state to show; a walk that has never begun has the time when the server did."""
        began = self._state["current-cycle-start-time"]
        return {**self._state, "current-cycle-start-time": self._made_at if began is None else began}

    def start(self) -> None:
        """Start walking, after the first delay."""
        self._tasks.start(self._run(), on_error=self._failed)

    async def stop(self) -> None:
        """End the current slice, save the state, and return."""
        self._stopping = True
        if self._timer is not None:
            self._timer.cancel()
        self._wake()
        await self._tasks.wait()

    async def _run(self) -> None:
        await self._load()
        await self._sleep(self._task.first_delay_s)
        while not self._stopping:
            began = self._slice_began = self._clock.now()
            if self._state["current-cycle"] is None:
                self._begin_cycle()
            else:
                began -= self._worked_before()
            await self._walk()
            if not self._stopping:
                await self._end_cycle()
                await self._sleep(max(self._rest(), began + self._task.cycle_s - self._clock.now()))
        await self._save()

    def _worked_before(self) -> float:
        """Seconds since an earlier process began this cycle, at most a cycle's length, because the clock may be wrong."""
        began: float = self._state["current-cycle-start-time"]
        return min(max(0.0, self._clock.unix_time() - began), self._task.cycle_s)

    def _failed(self, error: BaseException) -> None:
        log.error("the {name} stopped: {error}", name=self._task.name, error=repr(error))

    async def _walk(self) -> None:
        """Visit every storage index from the saved state on; return early when stopping."""
        state = self._state
        first = _index_behind(state["last-complete-prefix"])
        for prefix in PREFIXES[first:]:
            names = await self._names(prefix)
            if names is not None:
                await self._task.visit_prefix(state, prefix, names)
            last = state["last-complete-bucket"] or ""
            for name in names or ():
                if name > last:
                    await self._visit(name)
                    state["last-complete-bucket"] = name
                    await self._breathe()
                if self._stopping:
                    return
            state["last-complete-prefix"], state["last-complete-bucket"] = prefix, None
            await self._breathe()
            if self._stopping:
                return

    async def _names(self, prefix: str) -> list[str] | None:
        """The storage indexes below the prefix; None if the disk cannot list them."""
        try:
            return await self._service.run(index_names, self._service.store.disk, prefix)
        except GridError as error:
            log.warn("the {task} skipped {name}: {error}", task=self._task.name, name=prefix, error=str(error))
            return None

    async def _visit(self, name: str) -> None:
        try:
            await self._task.visit(self._state, name, self._clock.unix_time())
        except GridError as error:
            log.warn("the {task} skipped {name}: {error}", task=self._task.name, name=name, error=str(error))

    async def _breathe(self) -> None:
        """Sleep, if the slice has lasted long enough."""
        if self._clock.now() - self._slice_began >= SLICE_S:
            await self._save()
            await self._sleep(self._rest())
            self._slice_began = self._clock.now()

    def _rest(self) -> float:
        """Seconds to sleep after this slice."""
        worked = self._clock.now() - self._slice_began
        return min(LONGEST_SLEEP_S, max(SLICE_S, worked) * (1 / WORK_PART - 1))

    def _begin_cycle(self) -> None:
        last = self._state["last-cycle-finished"]
        self._state["current-cycle"] = 0 if last is None else last + 1
        self._state["current-cycle-start-time"] = self._clock.unix_time()
        self._state["last-complete-prefix"] = self._state["last-complete-bucket"] = None
        self._task.begin_cycle(self._state)

    async def _end_cycle(self) -> None:
        now = self._clock.unix_time()
        self._cycle_took_s = max(0.0, now - self._state["current-cycle-start-time"])
        await self._task.end_cycle(self._state, now)
        self._state["last-cycle-finished"] = self._state["current-cycle"]
        self._state["current-cycle"] = None
        self._state["last-complete-prefix"] = self._state["last-complete-bucket"] = None
        await self._save()

    async def _load(self) -> None:
        state = await self._service.run(load_state, self._service.store.disk, self._path)
        if state is not None and _is_walk(state) and self._task.is_state(state):
            self._state = state

    async def _save(self) -> None:
        await self._service.run(save_state, self._service.store.disk, self._path, self._state)

    @property
    def _path(self) -> str:
        return f"{self._task.name}.state.json"

    async def _sleep(self, seconds: float) -> None:
        if self._stopping:
            return
        self._pause = Deferred()
        self._wakes_at = self._clock.now() + seconds
        self._timer = self._clock.call_later(seconds, self._wake)
        await self._pause

    def _wake(self) -> None:
        pause, self._pause = self._pause, None
        if pause is not None:
            pause.callback(None)


def new_state() -> State:
    """The state before the first cycle."""
    return {
        "version": VERSION,
        "last-cycle-finished": None,
        "current-cycle": None,
        "current-cycle-start-time": None,
        "last-complete-prefix": None,
        "last-complete-bucket": None,
    }


def index_names(disk: Disk, prefix: str) -> list[str]:
    """The names of the storage indexes below the prefix, sorted."""
    try:
        entries = disk.list_directory(f"{SHARES}/{prefix}")
    except FileNotFoundError:
        return []
    return sorted(
        name
        for name, is_directory in entries
        if is_directory and name.startswith(prefix) and parse_index_name(name) is not None
    )


def _is_walk(state: State) -> bool:
    """Whether the fields that every walk has are valid."""
    cycles = (state.get("last-cycle-finished"), state.get("current-cycle"))
    places = (state.get("last-complete-prefix"), state.get("last-complete-bucket"))
    return (
        state.get("version") == VERSION
        and all(cycle is None or (isinstance(cycle, int) and cycle >= 0) for cycle in cycles)
        and all(place is None or isinstance(place, str) for place in places)
        and (cycles[1] is None or isinstance(state.get("current-cycle-start-time"), int | float))
    )


def _index_behind(prefix: str | None) -> int:
    return sum(1 for other in PREFIXES if prefix is not None and other <= prefix)


MAX_STATE_SIZE = 16 * 2**20

log = Logger()


def load_state(disk: Disk, path: str) -> dict[str, Any] | None:
    """The object in the file; None if the file does not exist or cannot be read."""
    try:
        handle = disk.open_file(path)
        try:
            data = disk.read(handle, 0, MAX_STATE_SIZE)
        finally:
            disk.close_file(handle)
        value = json.loads(data, parse_int=_integer, parse_float=_finite, parse_constant=_finite)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        log.warn("{path} cannot be read; starting over without it", path=path)
        return None
    return value if isinstance(value, dict) else None


def _integer(text: str) -> int:
    _finite(text)
    return int(text)


def _finite(text: str) -> float:
    """Parse a number; ValueError if times and counts cannot be computed with it."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return number


def save_state(disk: Disk, path: str, state: dict[str, Any]) -> None:
    """Replace the file, so that a loss of power leaves the old or the new state. Failures are logged and ignored.

    Without it the crawl starts over, and expiry no longer knows what it has seen of the clock.
    """
    temporary = f"{path}.tmp"
    try:
        handle = create_anew(disk, temporary)
        try:
            disk.write(handle, 0, [json.dumps(state).encode()])
            disk.sync_file(handle)
        finally:
            disk.close_file(handle)
        disk.rename(temporary, path)
        disk.sync_directory("")
    except OSError as error:
        log.warn("{path} could not be written: {reason}", path=path, reason=error.strerror)
