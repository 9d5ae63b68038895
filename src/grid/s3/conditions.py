"""Conditions of requests: If-Match and its kin, of reads, of puts and of copies. Pure."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import parsedate_to_datetime

from attrs import frozen

from grid.s3.faults import S3Fault
from grid.s3.object_info import StoredObject

Header = Callable[[str], str | None]


@frozen
class Conditions:
    """What has to hold of an object. The four headers, as they came."""

    match: str | None = None
    none_match: str | None = None
    modified_since: str | None = None
    unmodified_since: str | None = None

    @classmethod
    def of(cls, header: Header, prefix: str = "") -> Conditions:
        """The conditions in the headers whose names begin with the prefix."""
        return cls(
            match=header(f"{prefix}if-match"),
            none_match=header(f"{prefix}if-none-match"),
            modified_since=header(f"{prefix}if-modified-since"),
            unmodified_since=header(f"{prefix}if-unmodified-since"),
        )

    def judge(self, found: StoredObject) -> bool:
        """Whether the object is to be sent; False if the client has it. PreconditionFailed. [RFC 9110 13.2.2]"""
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
        """PreconditionFailed unless the object is to be sent: of the source of a copy."""
        _require(self.judge(found))

    def require_put(self, found: StoredObject | None) -> None:
        """S3Fault unless an object may be stored where this one is, or none is."""
        if self.none_match is not None:
            if self.none_match.strip() != "*":
                raise S3Fault("NotImplemented", "If-None-Match of a put takes * only.")
            _require(found is None)
        if self.match is not None:
            if found is None:
                raise S3Fault("NoSuchKey")
            _require(_names(self.match, found.info.etag))


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
