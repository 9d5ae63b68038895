"""A Grid value for tests, with working defaults for everything that they do not choose."""

from __future__ import annotations

from collections.abc import Sequence

from grid.engine.grid import Encoding, Grid
from grid.placement.leases import LeaseMaster
from grid.ports import Observer, Runtime, StorageServer, ignore_events

LEASES = LeaseMaster(b"lease master secret, 32 bytes...")


def grid_of(
    servers: Sequence[StorageServer],
    runtime: Runtime,
    *,
    encoding: Encoding | None = None,
    leases: LeaseMaster = LEASES,
    convergence: bytes | None = b"convergence",
    observer: Observer = ignore_events,
) -> Grid:
    """A client of these servers that remembers nothing yet."""
    return Grid(
        servers=servers,
        runtime=runtime,
        leases=leases,
        encoding=encoding or Encoding(),
        convergence=convergence,
        observer=observer,
    )
