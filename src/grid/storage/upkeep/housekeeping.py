"""What a storage server does by itself, with no client asking: counting, and ending leases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grid.ports import Clock
from grid.storage.calls.service import StorageService
from grid.storage.files.paths import PREFIXES
from grid.storage.settings import ExpirySettings
from grid.storage.upkeep.crawler import Crawler, State
from grid.storage.upkeep.lease_checker import LeaseChecker


class Housekeeping:
    """The crawlers of one service; stop them before it."""

    def __init__(self, service: StorageService, settings: ExpirySettings, clock: Clock) -> None:
        self._checker = LeaseChecker(service, settings, clock)
        self._leases = Crawler(service, self._checker, clock)
        self._buckets = Crawler(service, BucketCounter(), clock)

    def start(self) -> None:
        """Begin, in some minutes."""
        self._leases.start()
        self._buckets.start()

    async def stop(self) -> None:
        """Return when both have saved where they are."""
        await self._leases.stop()
        await self._buckets.stop()

    async def lease_status(self) -> dict[str, Any]:
        """What the lease checker has found so far, and in earlier cycles."""
        return await self._checker.status(self._leases.shown_state())

    def lease_progress(self) -> dict[str, Any]:
        """How far the lease checker is, and when it goes on."""
        return self._leases.progress()

    def bucket_status(self) -> dict[str, Any]:
        """What the counter has counted so far, and in its last whole cycle."""
        nothing: dict[str, Any] = {"bucket-counts": {}, "last-complete-bucket-count": None, "storage-index-samples": {}}
        return {**nothing, **self._buckets.shown_state()}

    def bucket_progress(self) -> dict[str, Any]:
        """How far the counter is, and when it goes on."""
        return self._buckets.progress()

    @property
    def bucket_count(self) -> int | None:
        """Storage indexes counted in the last whole cycle; None before there was one."""
        count: int | None = self._buckets.state.get("last-complete-bucket-count")
        return count


SAMPLED_PREFIXES = PREFIXES[:1]
"""Those whose storage indexes are kept by name, for tests of the server."""
MAX_SAMPLES = 1000


class BucketCounter:
    """The counter's part in a crawl; implements CycleTask. It looks into no share directory."""

    name = "bucket_counter"
    first_delay_s = 300.0
    cycle_s = 3600.0

    def is_state(self, state: State) -> bool:
        """Whether the counts so far can be added to."""
        counts = state.get("bucket-counts")
        return (
            isinstance(counts, dict)
            and all(isinstance(row, dict) and all(isinstance(n, int) for n in row.values()) for row in counts.values())
            and (state["current-cycle"] is None or str(state["current-cycle"]) in counts)
            and isinstance(state.get("storage-index-samples"), dict)
        )

    def begin_cycle(self, state: State) -> None:
        """Begin to count."""
        state["bucket-counts"] = {str(state["current-cycle"]): {}}
        state.setdefault("last-complete-bucket-count", None)
        state.setdefault("storage-index-samples", {})

    async def visit_prefix(self, state: State, prefix: str, names: Sequence[str]) -> None:
        """Count."""
        state["bucket-counts"][str(state["current-cycle"])][prefix] = len(names)
        if prefix in SAMPLED_PREFIXES:
            state["storage-index-samples"][prefix] = [state["current-cycle"], list(names[:MAX_SAMPLES])]

    async def visit(self, state: State, name: str, now: float) -> None:
        """Nothing."""

    async def end_cycle(self, state: State, now: float) -> None:
        """Sum up, if the disk let everything be counted: what it does not show is not gone."""
        counts = state["bucket-counts"][str(state["current-cycle"])]
        if len(counts) == len(PREFIXES):
            state["last-complete-bucket-count"] = sum(counts.values())
