"""Samples of a gateway's counters over the last day, for plots. [spec webapi 9.3]

Cost: memory: KEPT samples of six numbers each.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from grid.gateway.history.history import Counters
from grid.gateway.history.sample import Sample
from grid.ports import Clock, Timer

SAMPLE_S = 30.0
"""Seconds between two samples."""

KEPT = 24 * 120 + 1
"""Samples of one day."""

_STORED = ("uploader.bytes_uploaded", "mutable.bytes_published")
_READ = ("downloader.bytes_downloaded", "mutable.bytes_retrieved")
_OPERATIONS = (
    "uploader.files_uploaded",
    "downloader.files_downloaded",
    "mutable.files_published",
    "mutable.files_retrieved",
)


class Samples:
    """The samples of one gateway. connected: counts the connected servers. Runs from `start` to `close`."""

    def __init__(self, clock: Clock, counters: Counters, connected: Callable[[], int]) -> None:
        self._clock = clock
        self._counters = counters
        self._connected = connected
        self._kept: deque[Sample] = deque(maxlen=KEPT)
        self._timer: Timer | None = None

    def start(self) -> None:
        """Start sampling."""
        self._kept.append(self.now())
        self._timer = self._clock.call_later(SAMPLE_S, self.start)

    def close(self) -> None:
        """Stop sampling."""
        if self._timer is not None:
            self._timer.cancel()

    def now(self) -> Sample:
        """A sample of this moment, which is not kept."""
        values = self._counters.values
        return Sample(
            at=self._clock.now(),
            stored=sum(values.get(name, 0) for name in _STORED),
            read=sum(values.get(name, 0) for name in _READ),
            operations=sum(values.get(name, 0) for name in _OPERATIONS),
            processor_s=time.process_time(),
            connected=self._connected(),
        )

    def all(self) -> Sequence[Sample]:
        """The kept samples and one of this moment, the oldest first."""
        return [*self._kept, self.now()]
