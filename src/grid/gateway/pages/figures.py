"""Numbers as people read them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def size_text(size: int | None) -> str:
    """Bytes with three figures; a dash if they are not known."""
    if size is None:
        return "–"
    value, unit = float(size), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    if unit == 0:
        return f"{size} B"
    return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f} {_UNITS[unit]}"


def duration_text(seconds: float | None) -> str:
    """A time span; a dash if it is not known."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.{0 if seconds >= 0.01 else 1}f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def time_text(unix_time: float | None) -> str:
    """A moment, in UTC; a dash if it is not known or none that calendars have."""
    if unix_time is None:
        return "–"
    try:
        return datetime.fromtimestamp(unix_time, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "–"
