"""Times in S3's format. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import formatdate
from functools import lru_cache

from grid.directory.metadata import in_calendar


def iso_time(seconds: float) -> str:
    """Format a Unix time with milliseconds."""
    whole, microseconds = divmod(round(in_calendar(seconds) * 1_000_000), 1_000_000)
    minute, second = divmod(whole, 60)
    return f"{_minute(minute)}:{second:02}.{microseconds // 1000:03}Z"


@lru_cache(1024)
def _minute(minutes: int) -> str:
    """A time without its seconds: objects of a listing were often stored in the same minute."""
    return datetime.fromtimestamp(minutes * 60, UTC).isoformat(timespec="minutes").removesuffix("+00:00")


def header_time(seconds: float) -> str:
    """Format a Unix time as in headers."""
    return formatdate(in_calendar(seconds), usegmt=True)
