"""The storage server of this node, as its web pages show it. [spec webapi 9.3, 9.4]"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from grid.gateway.monitoring.statistics import Value


class StorageView(Protocol):
    """What is shown of a node's own storage server."""

    def counters(self) -> Mapping[str, int]:
        """`storage_server.*` that only grow."""

    async def statistics(self) -> dict[str, Value]:
        """`storage_server.*` of the moment, and latencies, by their names."""

    async def crawlers(self) -> dict[str, Any]:
        """`bucket-counter`, `lease-checker` and `lease-checker-progress`."""

    def counting(self) -> dict[str, Any]:
        """Of the bucket counter what `lease-checker-progress` is of the lease checker."""

    @property
    def expiry(self) -> str:
        """When leases end here, in words."""
