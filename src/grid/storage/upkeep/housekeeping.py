"""The background work of a storage server: counting shares, and expiring leases."""

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
    """The crawlers of one service. Stop them before you stop the service."""

    def __init__(self, service: StorageService, settings: ExpirySettings, clock: Clock) -> None:
        self._checker = LeaseChecker(service, settings, clock)
        self._leases = Crawler(service, self._checker, clock)
        self._buckets = Crawler(service, BucketCounter(), clock)

    def start(self) -> None:
        """Start, after a few minutes."""
        self._leases.start()
        self._buckets.start()

    async def stop(self) -> None:
        """Return once both crawlers have saved their state."""
        await self._leases.stop()
        await self._buckets.stop()

    async def lease_status(self) -> dict[str, Any]:
        """The lease checker's findings, in this cycle and earlier ones."""
        return await self._checker.status(self._leases.shown_state())

    def lease_progress(self) -> dict[str, Any]:
        """How far the lease checker is, and when it resumes."""
        return self._leases.progress()

    def bucket_status(self) -> dict[str, Any]:
        """The counts so far, and those of the last complete cycle."""
        nothing: dict[str, Any] = {"bucket-counts": {}, "last-complete-bucket-count": None, "storage-index-samples": {}}
        return {**nothing, **self._buckets.shown_state()}

    def bucket_progress(self) -> dict[str, Any]:
        """How far the counter is, and when it resumes."""
        return self._buckets.progress()

    @property
    def bucket_count(self) -> int | None:
        """Storage indexes counted in the last complete cycle; None before the first."""
        count: int | None = self._buckets.state.get("last-complete-bucket-count")
        return count


SAMPLED_PREFIXES = PREFIXES[:1]
"""Prefixes whose storage indexes are kept by name, for tests of the server."""
MAX_SAMPLES = 1000


class BucketCounter:
    """The counter's task for a crawler; implements CycleTask. It reads no share directory."""

    name = "bucket_counter"
    first_delay_s = 300.0
    cycle_s = 3600.0

    def is_state(self, state: State) -> bool:
        """Whether counting can resume from this state."""
        counts = state.get("bucket-counts")
        return (
            isinstance(counts, dict)
            and all(isinstance(row, dict) and all(isinstance(n, int) for n in row.values()) for row in counts.values())
            and (state["current-cycle"] is None or str(state["current-cycle"]) in counts)
            and isinstance(state.get("storage-index-samples"), dict)
        )

    def begin_cycle(self, state: State) -> None:
        """Start counting."""
        state["bucket-counts"] = {str(state["current-cycle"]): {}}
        state.setdefault("last-complete-bucket-count", None)
        state.setdefault("storage-index-samples", {})

    async def visit_prefix(self, state: State, prefix: str, names: Sequence[str]) -> None:
        """Count the storage indexes below the prefix."""
        state["bucket-counts"][str(state["current-cycle"])][prefix] = len(names)
        if prefix in SAMPLED_PREFIXES:
            state["storage-index-samples"][prefix] = [state["current-cycle"], list(names[:MAX_SAMPLES])]

    async def visit(self, state: State, name: str, now: float) -> None:
        """Do nothing: the names below each prefix are counted already."""

    async def end_cycle(self, state: State, now: float) -> None:
        """Sum up, if the disk could list everything. Otherwise keep the last counts."""
        counts = state["bucket-counts"][str(state["current-cycle"])]
        if len(counts) == len(PREFIXES):
            state["last-complete-bucket-count"] = sum(counts.values())
