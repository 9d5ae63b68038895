"""Times in S3's format. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

_LATEST = 253402300799.0


def iso_time(seconds: float) -> str:
    """Format a Unix time with milliseconds."""
    moment = datetime.fromtimestamp(min(max(seconds, 0.0), _LATEST), UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
