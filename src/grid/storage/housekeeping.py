"""What a storage server does by itself, with no client asking: counting, and ending leases."""

from __future__ import annotations

from typing import Any

from grid.ports import Clock
from grid.storage.bucket_counter import BucketCounter
from grid.storage.crawler import Crawler
from grid.storage.lease_checker import LeaseChecker
from grid.storage.service import StorageService
from grid.storage.settings import ExpirySettings


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
