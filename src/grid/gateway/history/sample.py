"""A gateway's counters at one moment, for plots. Pure. [spec webapi 9.3]"""

from __future__ import annotations

from grid.values import frozen


@frozen(kw_only=True)
class Sample:
    """at: Clock.now(). connected: servers. The other numbers only grow: bytes, operations, seconds of processor time."""

    at: float
    stored: int = 0
    read: int = 0
    operations: int = 0
    processor_s: float = 0.0
    connected: int = 0
