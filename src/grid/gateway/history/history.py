"""Recent and running operations of a gateway, and the counters that monitors read. [spec webapi 9.2, 9.3]

Built from the events of plans: `History.observe` is the observer of the gateway's one store, and each event belongs to
the operation that the running task began with `upload`, `download`, `retrieve` or `publish`. It never holds a
capability; objects are named by their storage index.

Cost: memory: the operations kept, each with at most operation.MAX_ROWS rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from twisted.logger import Logger

from grid.codec import base32
from grid.errors import GridError
from grid.gateway.faults import fault_of
from grid.gateway.history.operation import KEPT, Kind, Operation, Timeline, Times
from grid.immutable.put import LIT_SIZE
from grid.ports import Clock, Event


class Counters:
    """Counters by name. A counter exists from its first increment on."""

    def __init__(self) -> None:
        self._values: dict[str, int] = {}

    def add(self, name: str, count: int = 1) -> None:
        """Increase a counter. Adding zero does not create it."""
        if count:
            self._values[name] = self._values.get(name, 0) + count

    @property
    def values(self) -> Mapping[str, int]:
        """All counters by name."""
        return dict(self._values)


_log = Logger("grid.gateway")

TELL_S = 0.2
"""The least seconds between two progress reports of one operation to its watchers."""

_COUNTERS: dict[Kind, tuple[str, str]] = {
    "upload": ("uploader.files_uploaded", "uploader.bytes_uploaded"),
    "download": ("downloader.files_downloaded", "downloader.bytes_downloaded"),
    "publish": ("mutable.files_published", "mutable.bytes_published"),
    "retrieve": ("mutable.files_retrieved", "mutable.bytes_retrieved"),
}

_current: ContextVar[Operation | None] = ContextVar("grid_gateway_operation", default=None)

Watcher = Callable[[Operation], None]
"""Called when an operation begins, advances or ends."""


MAX_NAMES = 1000
"""Objects whose names are remembered."""

MAX_LENGTH = 300
"""Characters of a name that are remembered."""


class SubjectNames:
    """The names under which objects were asked for last, by storage index, for pages about operations.

    Names are private, unlike storage indexes: only pages for browsers that `grid web` has opened show them. (decision 352)
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def note(self, storage_index: bytes | None, name: str) -> None:
        """Remember a name. An object without a storage index, or a name without characters, is not remembered."""
        if storage_index is None or not name:
            return
        key = base32.encode(storage_index)
        self._names.pop(key, None)
        self._names[key] = name[:MAX_LENGTH]
        if len(self._names) > MAX_NAMES:
            del self._names[next(iter(self._names))]

    def find(self, storage_index: str | None) -> str:
        """The name of the object with this storage index in base32; "" if none is known."""
        return self._names.get(storage_index or "", "")


class History:
    """The operations of a gateway. Watchers must not raise and must return quickly."""

    def __init__(self, clock: Clock, counters: Counters | None = None) -> None:
        self._clock = clock
        self.counters = counters if counters is not None else Counters()
        self._active: dict[str, Operation] = {}
        self._recent: dict[Kind, deque[Operation]] = {kind: deque(maxlen=kept) for kind, kept in KEPT.items()}
        self._numbers: dict[Kind, int] = dict.fromkeys(KEPT, 0)
        self._watchers: list[Watcher] = []
        self.names = SubjectNames()

    # Called by handlers.

    @contextmanager
    def upload(self, storage_index: bytes | None = None, size: int | None = None) -> Iterator[Operation]:
        """Record the storing of an immutable file while the context lasts. A literal file is counted but not listed."""
        with self._running("upload", storage_index, size, listed=size is None or size > LIT_SIZE) as found:
            yield found

    @contextmanager
    def download(self, storage_index: bytes | None, size: int | None = None) -> Iterator[Operation]:
        """Record the reading of an immutable file, or of `size` bytes of it."""
        with self._running("download", storage_index, size, listed=storage_index is not None) as found:
            yield found

    @contextmanager
    def retrieve(self, storage_index: bytes | None, size: int | None = None) -> Iterator[Operation]:
        """Record the reading of a mutable file or directory."""
        with self._running("retrieve", storage_index, size) as found:
            yield found

    @contextmanager
    def publish(self, storage_index: bytes | None = None, size: int | None = None) -> Iterator[Operation]:
        """Record the writing of a mutable file or directory."""
        with self._running("publish", storage_index, size) as found:
            yield found

    def receive(self, operation: Operation, count: int) -> None:
        """Count bytes of an upload received from its client."""
        operation.progress.received += count
        if self._clock.now() - operation.times.shown_at >= TELL_S:
            self._tell(operation)

    def observe(self, event: Event) -> None:
        """Take in a plan's event; for `FileStore.observed_by`. Events outside any operation are ignored."""
        operation = _current.get()
        if operation is None or not operation.is_active:
            return
        if operation.begins_map(event):
            self._begin_map(operation)
        elif operation.map is not None and operation.ends_map(event):
            self._end_map(operation, None)
        operation.hear(event)
        if operation.map is not None:
            operation.map.hear(event)
        if event.what != "progress" or event.at - operation.times.shown_at >= TELL_S:
            self._tell(operation)

    # Queries.

    @property
    def active(self) -> list[Operation]:
        """Operations under way, the newest first."""
        return sorted((each for each in self._active.values() if each.is_listed), key=_age, reverse=True)

    @property
    def recent(self) -> list[Operation]:
        """Operations that ended, the newest first; KEPT limits each kind."""
        return sorted((each for kept in self._recent.values() for each in kept), key=_age, reverse=True)

    def find(self, kind: Kind, number: int) -> Operation | None:
        """The operation of this kind and number, or None if it is no longer kept."""
        found = self._active.get(f"{kind}-{number}")
        if found is not None and found.is_listed:
            return found
        return next((each for each in self._recent[kind] if each.number == number), None)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call the watcher from now on. Call the returned function to stop."""
        self._watchers.append(watcher)

        def end() -> None:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

        return end

    # Internals.

    @contextmanager
    def _running(
        self, kind: Kind, storage_index: bytes | None, size: int | None, *, listed: bool = True
    ) -> Iterator[Operation]:
        operation, before = self._begin(kind, storage_index, size, listed), _current.get()
        _current.set(operation)
        try:
            yield operation
        except BaseException as error:
            self._end(operation, error)
            raise
        else:
            self._end(operation, None)
        finally:
            _current.set(before)

    def _begin(self, kind: Kind, storage_index: bytes | None, size: int | None, listed: bool) -> Operation:
        number, now = self._numbers[kind], self._clock.now()
        self._numbers[kind] += 1
        operation = Operation(
            kind=kind,
            number=number,
            times=Times(started_at=self._clock.unix_time(), began_at=now),
            size=size,
            is_listed=listed,
            timeline=Timeline(now),
        )
        if storage_index is not None:
            operation.name(storage_index)
        self._active[operation.key] = operation
        self._tell(operation)
        return operation

    def _end(self, operation: Operation, error: BaseException | None) -> None:
        if operation.map is not None:
            self._end_map(operation, error)
        if error is None:
            operation.end(self._clock.now(), "done", "Finished")
            self._count(operation)
        elif isinstance(error, GridError):
            operation.end(self._clock.now(), "failed", str(fault_of(error)))
        else:
            # Either the client went away, or it is a bug, which the log describes.
            stopped = not isinstance(error, Exception) or type(error).__name__ == "CancelledError"
            operation.end(self._clock.now(), "cancelled" if stopped else "failed", "Stopped" if stopped else "Failed")
        self._active.pop(operation.key, None)
        if operation.is_listed and (operation.storage_index is not None or operation.outcome != "done"):
            self._recent[operation.kind].append(operation)
        self._tell(operation)

    def _count(self, operation: Operation) -> None:
        names = _COUNTERS.get(operation.kind)
        if operation.kind in ("publish", "retrieve") and operation.size is None:
            return  # Nothing had to be changed, or nothing was read.
        if names is not None:
            self.counters.add(names[0])
            self.counters.add(names[1], operation.size or 0)

    def _begin_map(self, operation: Operation) -> None:
        if operation.map is not None:
            self._end_map(operation, None)
        operation.map = self._begin("mapupdate", None, None, True)
        operation.map.storage_index, operation.map.subject = operation.storage_index, operation.subject
        operation.map.mode = "MODE_WRITE" if operation.kind == "publish" else "MODE_READ"

    def _end_map(self, operation: Operation, error: BaseException | None) -> None:
        found, operation.map = operation.map, None
        if found is not None:
            found.storage_index = operation.storage_index
            self._end(found, error)

    def _tell(self, operation: Operation) -> None:
        operation.times.shown_at = self._clock.now()
        if operation.is_listed:
            for watcher in list(self._watchers):
                try:
                    watcher(operation)
                except GridError as error:
                    _log.info("a watcher of operations failed: {reason}", reason=str(error))


def _age(operation: Operation) -> tuple[float, int]:
    return operation.times.began_at, operation.number
