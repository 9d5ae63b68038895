"""The events inside an operation, kept for unusually slow ones. Pure.

A timeline is a list of events, each `[milliseconds, what, detail, server, shares, bytes, request]`. Servers are
numbered in order of appearance; contents, keys and capabilities never appear.
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from attrs import define, field, frozen

from grid.ports import Event
from perf.sampling.statistics import median

KEPT = 1000
"""Events kept from the start of an operation, and as many from its end."""

DETAIL = 80
SHARES = 8
"""Kept of each event: characters of its detail, and share numbers."""

OUTLIER = 1.5
"""Multiple of its kind's median from which an operation counts as slow."""

FEWEST = 3
"""With fewer samples of a kind, none counts as unusual."""

KEPT_PER_KIND = 3
"""Timelines kept per kind of work and run, the slowest first."""

NORMAL = 1.4826
"""Standard deviations of normal noise in the median distance from its median."""


@define
class EventLog:
    """An observer that keeps the first and last events, and counts the requests sent to servers."""

    requests: int = 0
    _first: list[Event] = field(factory=list)
    _last: deque[Event] = field(factory=lambda: deque(maxlen=KEPT))
    _count: int = 0

    def __call__(self, event: Event) -> None:
        """Take in an event."""
        self._count += 1
        self.requests += event.what == "send" and event.server_id is not None
        if len(self._first) < KEPT:
            self._first.append(event)
        else:
            self._last.append(event)

    def to_json(self) -> str:
        """The timeline, with the number of events omitted from its middle."""
        events = [*self._first, *self._last]
        start = events[0].at if events else 0.0
        names = dict.fromkeys(event.server_id for event in events if event.server_id is not None)
        numbers = {name: number for number, name in enumerate(names)}
        kept = [
            [
                round((event.at - start) * 1e3, 2),
                event.what,
                event.detail[:DETAIL],
                numbers[event.server_id] if event.server_id is not None else -1,
                list(event.share_numbers[:SHARES]),
                event.count,
                event.request_index,
            ]
            for event in events
        ]
        return json.dumps({"left_out": self._count - len(events), "events": kept}, separators=(",", ":"))


@frozen
class Kept:
    """An operation of a run whose timeline may be requested. place: run and order."""

    place: tuple[int, int]
    seconds: float
    _packed: bytes

    @property
    def timeline(self) -> dict[str, Any]:
        """The timeline as a JSON value."""
        value: dict[str, Any] = json.loads(zlib.decompress(self._packed))
        return value


class Outliers:
    """Seconds by kind of work, and the timelines of operations, until it is known which are worth keeping."""

    def __init__(
        self,
        earlier: Mapping[Hashable, Sequence[float]] | None = None,
        *,
        deviations: float = 0.0,
        most: int = KEPT_PER_KIND,
    ) -> None:
        """earlier: seconds of the same kinds of work in previous runs. most: chosen of each kind.

        deviations: how many of the median deviations of its kind a slow operation must also be above the median, where times of a kind differ
        widely.
        """
        self._times: dict[Hashable, list[float]] = {kind: list(times) for kind, times in (earlier or {}).items()}
        self._kept: dict[Hashable, list[Kept]] = {}
        self._deviations, self._most = deviations, most

    @property
    def times(self) -> Mapping[Hashable, Sequence[float]]:
        """Seconds of every kind of work so far."""
        return self._times

    def exceeded(self, kind: Hashable, seconds: float) -> float | None:
        """The median of the kind so far, if an operation with this time leaves its band; None otherwise, or with too few samples."""
        band = self._band(kind)
        return band[0] if band is not None and seconds > band[1] else None

    def add(self, kind: Hashable, place: tuple[int, int], seconds: float, timeline: str | None) -> None:
        """Add an operation; it is compared only with those of the same kind. timeline: None for one that is not to be chosen."""
        self._times.setdefault(kind, []).append(seconds)
        if timeline is not None:
            self._kept.setdefault(kind, []).append(Kept(place, seconds, zlib.compress(timeline.encode(), 1)))

    def chosen(self) -> list[tuple[Kept, float]]:
        """The slow operations, each with the median seconds of its kind."""
        found = []
        for kind, kept in self._kept.items():
            band = self._band(kind)
            if band is not None:
                middle, limit = band
                slow = sorted((one for one in kept if one.seconds > limit), key=lambda one: -one.seconds)
                found += [(one, middle) for one in slow[: self._most]]
        return found

    def _band(self, kind: Hashable) -> tuple[float, float] | None:
        """The median of the kind so far, and the seconds above which an operation is slow; None with too few samples."""
        times = self._times.get(kind, ())
        if len(times) < FEWEST:
            return None
        middle = median(times)
        if not self._deviations:
            return middle, OUTLIER * middle
        deviation = NORMAL * median([abs(one - middle) for one in times])
        return middle, max(OUTLIER * middle, middle + self._deviations * deviation)
