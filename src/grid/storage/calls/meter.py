"""How often a server was asked for what, and how long it took. Pure. [spec webapi 9.3]

Cost: per call one addition and one entry in a ring; everything else is computed when somebody asks. Memory: MAX_SAMPLES numbers
for each operation.
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
"""As 1.20 names them: `get` asks which shares there are, `readv` and `writev` are those of mutable shares."""

MAX_SAMPLES = 1000
"""The latest of each operation whose times are kept."""

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
    """Counts and times of one server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: dict[str, int] = {}
        self._times: dict[Operation, deque[float]] = {}

    def now(self) -> float:
        """The time that spans are measured by."""
        return self._clock.now()

    def count(self, name: Operation | Literal["bytes_added"], count: int = 1) -> None:
        """Add to a count; a name appears with its first."""
        if count:
            self._counts[name] = self._counts.get(name, 0) + count

    def took(self, operation: Operation, began: float) -> None:
        """A call that began then has ended."""
        times = self._times.get(operation)
        if times is None:
            times = self._times[operation] = deque(maxlen=MAX_SAMPLES)
        times.append(self._clock.now() - began)

    @property
    def counts(self) -> Mapping[str, int]:
        """How often, by operation; and `bytes_added`, bytes of immutable shares that were finished."""
        return dict(self._counts)

    def latencies(self) -> dict[str, float | int | None]:
        """`OP.samplesize`, `OP.mean` and percentiles in seconds; None for what so few samples do not tell."""
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
    """Anything with a meter."""

    meter: Meter


def metered(operation: Operation, count: Callable[..., int] | None = None) -> Callable[[Method], Method]:
    """Count and time an async method of somebody `Metered`.

    count: how many operations the method's arguments, self left out, stand for; None: always one.
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
    """Files that are asked about."""
    return len(finds)


def count_ranges(storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]], **_: object) -> int:
    """Ranges that are read; one a call for those who ask one by one."""
    return sum(map(len, wants.values()))


def count_writes(writes: Sequence[ShareWrite]) -> int:
    """Pieces that are written."""
    return len(writes)


def counted_later(share_numbers: Iterable[ShareNumber]) -> int:
    """Nothing: what is finished is counted where it is."""
    return 0


def note_stored(meter: Meter, stores: Sequence[NewShares], answers: Sequence[StoreAnswer], began: float) -> None:
    """Count what was stored whole as the calls that it would have been one by one, and time it as one."""
    meter.count("allocate", len(stores))
    for new, answer in zip(stores, answers, strict=True):
        if answer.stored:
            meter.count("write", len(new.shares))
            meter.count("close", len(new.shares))
            meter.count("bytes_added", new.size)
    meter.took("close", began)
