"""The storage server of this node, as its web pages show it. [spec webapi 9.4]"""

from __future__ import annotations

from typing import Protocol

from grid.gateway.statistics import Value


class StorageView(Protocol):
    """What is shown of a node's own storage server."""

    async def statistics(self) -> dict[str, Value]:
        """`storage_server.*` by their names."""

    async def crawlers(self) -> dict[str, object]:
        """`bucket-counter`, `lease-checker` and `lease-checker-progress`."""
