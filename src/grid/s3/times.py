"""Times in S3's format. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import formatdate

_LATEST = 253402300799.0


def iso_time(seconds: float) -> str:
    """Format a Unix time with milliseconds."""
    moment = datetime.fromtimestamp(_in_calendar(seconds), UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def header_time(seconds: float) -> str:
    """Format a Unix time as in headers."""
    return formatdate(_in_calendar(seconds), usegmt=True)


def _in_calendar(seconds: float) -> float:
    """The nearest time that can be written: anyone who can change a link chooses what it says."""
    return min(max(seconds, 0.0), _LATEST)
