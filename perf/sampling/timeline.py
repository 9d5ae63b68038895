"""What happened inside an operation, kept for those that took unusually long. Pure.

A timeline is a list of events, each `[milliseconds, what, detail, server, shares, bytes, request]`; servers are
numbered as they appear, and bytes of files, keys and caps are in none of them.
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
"""Events kept of the beginning of an operation, and as many of its end."""

DETAIL = 80
SHARES = 8
"""Characters of a detail, numbers of shares that are kept of an event."""

OUTLIER = 1.5
"""Times the median of its kind: what took longer is worth a look."""

FEWEST = 3
"""With fewer samples of a kind than this, none of them counts as unusual."""

KEPT_PER_KIND = 3
"""Timelines of a kind of work in one run, the slowest first."""


@define
class EventLog:
    """An observer that keeps the first and the last events, and counts the requests sent to servers."""

    requests: int = 0
    _first: list[Event] = field(factory=list)
    _last: deque[Event] = field(factory=lambda: deque(maxlen=KEPT))
    _count: int = 0

    def __call__(self, event: Event) -> None:
        """Hear of an event."""
        self._count += 1
        self.requests += event.what == "send" and event.server_id is not None
        if len(self._first) < KEPT:
            self._first.append(event)
        else:
            self._last.append(event)

    def to_json(self) -> str:
        """The timeline, with how many events were left out of its middle."""
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
    """One operation of a run whose timeline may be asked for. place: run and order."""

    place: tuple[int, int]
    seconds: float
    _packed: bytes

    @property
    def timeline(self) -> dict[str, Any]:
        """The timeline as a value of JSON."""
        value: dict[str, Any] = json.loads(zlib.decompress(self._packed))
        return value


class Outliers:
    """The timelines of one run, until it is known which of them are worth keeping."""

    def __init__(self, earlier: Mapping[Hashable, Sequence[float]] | None = None) -> None:
        """earlier: seconds of the same kinds of work in the runs before."""
        self._times: dict[Hashable, list[float]] = {kind: list(times) for kind, times in (earlier or {}).items()}
        self._kept: dict[Hashable, list[Kept]] = {}

    @property
    def times(self) -> Mapping[Hashable, Sequence[float]]:
        """Seconds of every kind of work so far."""
        return self._times

    def band(self, kind: Hashable) -> float | None:
        """The median of the kind so far; None while there are too few."""
        times = self._times.get(kind, ())
        return median(times) if len(times) >= FEWEST else None

    def add(self, kind: Hashable, place: tuple[int, int], seconds: float, timeline: str | None) -> None:
        """One operation of a kind: only of equals can one say that one took long."""
        self._times.setdefault(kind, []).append(seconds)
        if timeline is not None:
            self._kept.setdefault(kind, []).append(Kept(place, seconds, zlib.compress(timeline.encode(), 1)))

    def chosen(self) -> list[tuple[Kept, float]]:
        """Those that took longer than OUTLIER times the median of their kind, with that median in seconds."""
        found = []
        for kind, kept in self._kept.items():
            times = self._times[kind]
            if len(times) >= FEWEST:
                middle = median(times)
                slow = sorted((one for one in kept if one.seconds > OUTLIER * middle), key=lambda one: -one.seconds)
                found += [(one, middle) for one in slow[:KEPT_PER_KIND]]
        return found
