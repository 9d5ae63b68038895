"""Conditional headers such as If-Match, of reads, puts, copies and deletes. Pure.

A mutable file has one ETag and one time for all its versions. So none of them is known to be the one that the client knows: the
file satisfies no condition on its version, and is always sent as a whole to a client that has one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from grid.s3.faults import S3Fault
from grid.s3.object_info import StoredObject
from grid.s3.times import header_time
from grid.values import frozen

Header = Callable[[str], str | None]


@frozen
class Conditions:
    """The conditions of a request: its four headers, as received."""

    match: str | None = None
    none_match: str | None = None
    modified_since: str | None = None
    unmodified_since: str | None = None

    @classmethod
    def of(cls, header: Header, prefix: str = "") -> Conditions:
        """The conditions from the headers with this prefix."""
        return cls(
            match=header(f"{prefix}if-match"),
            none_match=header(f"{prefix}if-none-match"),
            modified_since=header(f"{prefix}if-modified-since"),
            unmodified_since=header(f"{prefix}if-unmodified-since"),
        )

    def judge(self, found: StoredObject) -> bool:
        """Whether to send the object; False if the client has it. PreconditionFailed. [RFC 9110 13.2.2]"""
        modified = int(found.info.modified)
        if self.match is not None:
            _require(_names(self.match, found))
        elif (unmodified := _seconds(self.unmodified_since)) is not None:
            _require(modified <= unmodified and not found.is_mutable)
        if self.none_match is not None:
            return not _names(self.none_match, found)
        since = _seconds(self.modified_since)
        return since is None or modified > since or found.is_mutable

    def require(self, found: StoredObject) -> None:
        """Raise PreconditionFailed unless the source of a copy may be read."""
        _require(self.judge(found))

    def require_put(self, found: StoredObject | None) -> None:
        """Raise S3Fault unless the conditions permit replacing this object, or creating one if it is None."""
        if self.none_match is not None:
            _require(found is None or not _names(self.none_match, found))
        if self.match is not None:
            if found is None:
                raise S3Fault("NoSuchKey")
            _require(_names(self.match, found))


@frozen
class DeleteConditions:
    """The conditions of a delete, unparsed. They apply only to an object that exists."""

    match: str | None = None
    modified: str | None = None
    size: str | None = None

    def require(self, found: StoredObject | None) -> None:
        """Raise PreconditionFailed unless the object may be deleted; InvalidArgument."""
        modified = None if self.modified is None else _moment(self.modified)
        if self.size is not None and not (self.size.isascii() and self.size.isdigit() and len(self.size) < 20):
            raise S3Fault("InvalidArgument", "The size in a condition is not a possible number.")
        if found is None:
            return
        _require(self.match is None or _names(self.match, found))
        _require(modified is None or (modified == int(found.info.modified) and not found.is_mutable))
        _require(self.size is None or int(self.size) == found.size)

    def require_begun(self, begun: float, now: float) -> None:
        """Raise PreconditionFailed unless an upload was begun at this time; times to come are ignored, as in S3."""
        if self.modified is not None:
            moment = _moment(self.modified)
            _require(moment > now or moment == int(begun))


def permits_range(header: str | None, found: StoredObject) -> bool:
    """Whether to send only a range, by the If-Range header if there is one: exactly the object's ETag or time. [RFC 9110 13.1.5]"""
    if header is None:
        return True
    return not found.is_mutable and header.strip() in (f'"{found.info.etag}"', header_time(found.info.modified))


def _moment(text: str) -> int:
    """Parse an HTTP date or an ISO 8601 date; InvalidArgument."""
    found = _seconds(text)
    if found is None:
        try:
            moment = datetime.fromisoformat(text)
            found = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            raise S3Fault("InvalidArgument", "The time in a condition is no date.") from None
    return int(found)


def _require(holds: bool) -> None:
    if not holds:
        raise S3Fault("PreconditionFailed")


def _names(header: str, found: StoredObject) -> bool:
    """Whether one of the tags in a header names the object's version, or any."""
    tags = [part.strip() for part in header.split(",")]
    return "*" in tags or (
        not found.is_mutable and any(tag.removeprefix("W/").strip('"') == found.info.etag for tag in tags)
    )


def _seconds(date: str | None) -> float | None:
    try:
        return None if date is None else parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
