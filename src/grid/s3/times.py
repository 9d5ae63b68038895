"""Times in S3's format. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import formatdate

from grid.directory.metadata import in_calendar


def iso_time(seconds: float) -> str:
    """Format a Unix time with milliseconds."""
    moment = datetime.fromtimestamp(in_calendar(seconds), UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def header_time(seconds: float) -> str:
    """Format a Unix time as in headers."""
    return formatdate(in_calendar(seconds), usegmt=True)
