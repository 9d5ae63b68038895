"""Moments as S3 writes them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

_LATEST = 253402300799.0


def iso_time(seconds: float) -> str:
    """A Unix time, to the millisecond."""
    moment = datetime.fromtimestamp(min(max(seconds, 0.0), _LATEST), UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
