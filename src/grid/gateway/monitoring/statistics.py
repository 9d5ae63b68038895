"""Statistics of the node and its storage server, under the names that monitors know. [spec webapi 9.3, 9.4]

Owns the timers that sample processor time and, for plots, the counters.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from grid.gateway.history.history import Counters
from grid.gateway.monitoring.samples import Samples
from grid.ports import Clock, Timer

LOOK_S = 60.0
"""Seconds between samples of processor time."""

_AVERAGES = {"1min_avg": 1, "5min_avg": 5, "15min_avg": 15}

Value = float | int | None

_PERCENTILE = re.compile(r"_(\d\d)_(\d)_percentile$")
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_]")


class CpuMonitor:
    """The process's share of one processor, averaged over the last minutes. Runs from `start` to `close`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, float]] = deque(maxlen=max(_AVERAGES.values()) + 1)
        self._timer: Timer | None = None
        self._began_s = time.process_time()

    def start(self) -> None:
        """Start sampling."""
        self._samples.append((self._clock.now(), time.process_time()))
        self._timer = self._clock.call_later(LOOK_S, self.start)

    def close(self) -> None:
        """Stop sampling."""
        if self._timer is not None:
            self._timer.cancel()

    def values(self) -> dict[str, Value]:
        """The averages over those periods that have passed since the start, and the total seconds."""
        found: dict[str, Value] = {"cpu_monitor.total": time.process_time() - self._began_s}
        for name, minutes in _AVERAGES.items():
            if len(self._samples) > minutes:
                (now, used), (then, used_then) = self._samples[-1], self._samples[-1 - minutes]
                if now > then:
                    found[f"cpu_monitor.{name}"] = (used - used_then) / (now - then)
        return found


class Statistics:
    """The counters and measurements of one process. connected: counts the connected servers."""

    def __init__(self, clock: Clock, counters: Counters, connected: Callable[[], int] = lambda: 0) -> None:
        self._clock = clock
        self._began_at = clock.now()
        self.counters = counters
        self.cpu = CpuMonitor(clock)
        self.samples = Samples(clock, counters, connected)

    def start(self) -> None:
        """Start sampling."""
        self.cpu.start()
        self.samples.start()

    def close(self) -> None:
        """Stop sampling."""
        self.cpu.close()
        self.samples.close()

    def values(self, counters: Mapping[str, int], stats: Mapping[str, Value]) -> dict[str, dict[str, Value]]:
        """Return counters and statistics. counters, stats: those of the node's storage server; empty without one."""
        uptime = self._clock.now() - self._began_at
        return {
            "counters": {**self.counters.values, **counters},
            "stats": {"node.uptime": uptime, **self.cpu.values(), **stats},
        }


def pack_openmetrics(values: Mapping[str, Mapping[str, Value]]) -> bytes:
    """Pack the text that scrapers read, in 1.20's layout."""
    lines = []
    for group in ("counters", "stats"):
        for name, value in sorted(values[group].items()):
            found = _PERCENTILE.search(name)
            label = ""
            if found is not None:
                name = name[: found.start()]
                label = f'{{quantile="0.{found[1]}{found[2]}"}}'
            text = "NaN" if value is None else str(int(value) if isinstance(value, bool) else value)
            lines.append(f"tahoe_{group}_{_FORBIDDEN.sub('_', name)}{label} {text}\n")
    return ("".join(lines) + "# EOF\n").encode("ascii")


class StorageView(Protocol):
    """What the gateway shows of its node's own storage server."""

    def counters(self) -> Mapping[str, int]:
        """The `storage_server.*` values that only grow."""

    async def statistics(self) -> dict[str, Value]:
        """The current `storage_server.*` values, and latencies, by name."""

    async def crawlers(self) -> dict[str, Any]:
        """`bucket-counter`, `lease-checker` and `lease-checker-progress`."""

    def counting(self) -> dict[str, Any]:
        """The progress of the bucket counter, in the form of `lease-checker-progress`."""

    @property
    def expiry(self) -> str:
        """Say when leases on this server expire."""
