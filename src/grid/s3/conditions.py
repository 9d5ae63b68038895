"""Conditional headers such as If-Match, of reads, puts, copies and deletes. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from attrs import frozen

from grid.s3.faults import S3Fault
from grid.s3.object_info import StoredObject

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
            _require(_names(self.match, found.info.etag))
        elif (unmodified := _seconds(self.unmodified_since)) is not None:
            _require(modified <= unmodified)
        if self.none_match is not None:
            return not _names(self.none_match, found.info.etag)
        since = _seconds(self.modified_since)
        return since is None or modified > since

    def require(self, found: StoredObject) -> None:
        """Raise PreconditionFailed unless the source of a copy may be read."""
        _require(self.judge(found))

    def require_put(self, found: StoredObject | None) -> None:
        """Raise S3Fault unless the conditions permit replacing this object, or creating one if it is None."""
        if self.none_match is not None:
            _require(found is None or not _names(self.none_match, found.info.etag))
        if self.match is not None:
            if found is None:
                raise S3Fault("NoSuchKey")
            _require(_names(self.match, found.info.etag))


@frozen
class DeleteConditions:
    """The conditions of a delete, unparsed. They apply only to an object that exists."""

    match: str | None = None
    modified: str | None = None
    size: str | None = None

    def require(self, found: StoredObject | None) -> None:
        """Raise PreconditionFailed unless the object may be deleted; InvalidArgument. A mutable file matches no size."""
        modified = None if self.modified is None else _moment(self.modified)
        if self.size is not None and not (self.size.isascii() and self.size.isdigit() and len(self.size) < 20):
            raise S3Fault("InvalidArgument", "The size in a condition is not a possible number.")
        if found is None:
            return
        _require(self.match is None or _names(self.match, found.info.etag))
        _require(modified is None or modified == int(found.info.modified))
        _require(self.size is None or int(self.size) == found.size)

    def require_begun(self, begun: float, now: float) -> None:
        """Raise PreconditionFailed unless an upload was begun at this time; times to come are ignored, as in S3."""
        if self.modified is not None:
            moment = _moment(self.modified)
            _require(moment > now or moment == int(begun))


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


def _names(header: str, etag: str) -> bool:
    return any(
        tag == "*" or tag.removeprefix("W/").strip('"') == etag for tag in (part.strip() for part in header.split(","))
    )


def _seconds(date: str | None) -> float | None:
    try:
        return None if date is None else parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
