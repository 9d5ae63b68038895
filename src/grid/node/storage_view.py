"""What a node's web pages show of its own storage server, by the names that monitors know. [spec webapi 9.3, 9.4]"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from attrs import define

from grid.storage.housekeeping import Housekeeping
from grid.storage.service import StorageService
from grid.storage.settings import StorageSettings

_DAY_S = 86400


@define(eq=False)
class LocalStorage:
    """The server, as a gateway's StorageView."""

    _service: StorageService
    _housekeeping: Housekeeping
    _settings: StorageSettings

    def counters(self) -> Mapping[str, int]:
        """How often it was asked for what."""
        return {f"storage_server.{name}": count for name, count in self._service.meter.counts.items()}

    async def statistics(self) -> dict[str, float | int | None]:
        """Latencies, room, and what is stored. What cannot be known is left out; PeerError if the disk fails."""
        space, available = await self._service.space()
        found: dict[str, float | int | None] = {
            "allocated": self._service.reserved_size,
            "reserved_space": self._settings.reserved_space,
            "accepting_immutable_shares": int(available is None or available > 0),
            **{f"latencies.{name}": value for name, value in self._service.meter.latencies().items()},
        }
        if space is not None:
            found |= {
                "disk_total": space.total,
                "disk_used": space.total - space.free_for_root,
                "disk_free_for_root": space.free_for_root,
                "disk_free_for_nonroot": space.free,
                "disk_avail": max(0, space.free - self._settings.reserved_space),
            }
        if self._housekeeping.bucket_count is not None:
            found["total_bucket_count"] = self._housekeeping.bucket_count
        return {f"storage_server.{name}": value for name, value in found.items()}

    async def crawlers(self) -> dict[str, Any]:
        """The walks over all shares: where they are, what they found."""
        return {
            "bucket-counter": self._housekeeping.bucket_status(),
            "lease-checker": await self._housekeeping.lease_status(),
            "lease-checker-progress": self._housekeeping.lease_progress(),
        }

    def counting(self) -> dict[str, Any]:
        """How far the count of storage indexes is."""
        return self._housekeeping.bucket_progress()

    @property
    def expiry(self) -> str:
        """When leases end."""
        expire = self._settings.expire
        kinds = [kind for kind, on in (("immutable", expire.immutable), ("mutable", expire.mutable)) if on]
        if not expire.enabled or not kinds:
            return "Leases are counted; none is removed."
        what = f"Leases of {' and '.join(kinds)} shares end"
        if expire.mode == "cutoff-date" and expire.cutoff is not None:
            day = datetime.fromtimestamp(expire.cutoff, UTC).strftime("%Y-%m-%d")
            return f"{what} if they were last renewed before {day}."
        if expire.override_s is not None:
            return f"{what} {_days(expire.override_s)} after they were last renewed."
        return f"{what} 31 days after they were last renewed."


def _days(seconds: float) -> str:
    days = seconds / _DAY_S
    return f"{days:g} {'day' if days == 1 else 'days'}"
