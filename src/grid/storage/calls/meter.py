"""Counts a server's operations and measures their times. Pure. [spec webapi 9.3]

Cost: one addition and one ring entry per call; everything else is computed on request. Memory: MAX_SAMPLES numbers
per operation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Literal, Protocol, TypeVar, cast

from grid.ports import (
    Clock,
    Find,
    NewShares,
    Range,
    ShareNumber,
    ShareWrite,
    StorageIndex,
    StoreAnswer,
)

Operation = Literal["allocate", "write", "close", "abort", "get", "read", "readv", "writev", "add-lease"]
"""Names from 1.20: `get` lists shares; `readv` and `writev` are for mutable shares."""

MAX_SAMPLES = 1000
"""The latest times kept for each operation."""

_PERCENTILES = (
    (0.01, "01_0_percentile", 100),
    (0.1, "10_0_percentile", 10),
    (0.5, "50_0_percentile", 10),
    (0.9, "90_0_percentile", 10),
    (0.95, "95_0_percentile", 20),
    (0.99, "99_0_percentile", 100),
    (0.999, "99_9_percentile", 1000),
)
"""The quantile, its name, and the fewest samples that determine it."""

Method = TypeVar("Method", bound=Callable[..., Coroutine[Any, Any, Any]])


class Meter:
    """Counts and times of one server's operations."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: dict[str, int] = {}
        self._times: dict[Operation, deque[float]] = {}

    def now(self) -> float:
        """The current time for measuring spans."""
        return self._clock.now()

    def count(self, name: Operation | Literal["bytes_added"], count: int = 1) -> None:
        """Add to a count; the first addition creates it."""
        if count:
            self._counts[name] = self._counts.get(name, 0) + count

    def took(self, operation: Operation, began: float) -> None:
        """Note that a call that began then has ended."""
        times = self._times.get(operation)
        if times is None:
            times = self._times[operation] = deque(maxlen=MAX_SAMPLES)
        times.append(self._clock.now() - began)

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of calls by operation, and `bytes_added`, the bytes of finished immutable shares."""
        return dict(self._counts)

    def latencies(self) -> dict[str, float | int | None]:
        """`OP.samplesize`, `OP.mean` and percentiles in seconds; None if there are too few samples."""
        found: dict[str, float | int | None] = {}
        for operation, times in self._times.items():
            ordered = sorted(times)
            count = len(ordered)
            found[f"{operation}.samplesize"] = count
            found[f"{operation}.mean"] = sum(ordered) / count
            for part, name, fewest in _PERCENTILES:
                found[f"{operation}.{name}"] = ordered[int(part * count)] if count >= fewest else None
        return found


class Metered(Protocol):
    """An object with a meter."""

    meter: Meter


def metered(operation: Operation, count: Callable[..., int] | None = None) -> Callable[[Method], Method]:
    """Count and time an async method of a `Metered` object.

    count: how many operations the method's arguments (without self) stand for; None: always one.
    """

    def wrap(method: Method) -> Method:
        @wraps(method)
        async def timed(owner: Metered, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
            meter = owner.meter
            meter.count(operation, 1 if count is None else count(*arguments, **named))
            began = meter.now()
            try:
                return await method(owner, *arguments, **named)
            finally:
                meter.took(operation, began)

        return cast(Method, timed)

    return wrap


def count_finds(finds: Sequence[Find], **_: object) -> int:
    """Number of files in the question."""
    return len(finds)


def count_ranges(storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]], **_: object) -> int:
    """Number of ranges read, which clients that ask one by one would send as separate calls."""
    return sum(map(len, wants.values()))


def count_writes(writes: Sequence[ShareWrite]) -> int:
    """Number of pieces written."""
    return len(writes)


def counted_later(share_numbers: Iterable[ShareNumber]) -> int:
    """Zero: finished shares are counted when they finish."""
    return 0


def note_stored(meter: Meter, stores: Sequence[NewShares], answers: Sequence[StoreAnswer], began: float) -> None:
    """Count whole shares as the separate calls that they replace, and time them as one."""
    meter.count("allocate", len(stores))
    for new, answer in zip(stores, answers, strict=True):
        if answer.stored:
            meter.count("write", len(new.shares))
            meter.count("close", len(new.shares))
            meter.count("bytes_added", new.size)
    meter.took("close", began)
