"""The parts of a health report that every kind of file has. Pure. [spec placement 9, 10]"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from attrs import frozen

HEALTH_COUNTS = (
    "count-happiness",
    "count-shares-good",
    "count-shares-needed",
    "count-shares-expected",
    "count-good-share-hosts",
    "count-wrong-shares",
    "count-corrupt-shares",
    "count-recoverable-versions",
    "count-unrecoverable-versions",
)
"""The numbers among the results of a check of anything that has shares."""


def crowding(reached: int, wanted: int) -> str:
    """What is to be added to `Healthy` where fewer servers have a share of their own than make a file safe; empty if enough."""
    if reached >= wanted:
        return ""
    servers = "1 server holds" if reached == 1 else f"{reached} servers hold"
    return f", but only {servers} a share of its own, and {wanted} should: repair spreads shares over the servers there are"


class Health(Protocol):
    """What a check found."""

    @property
    def storage_index(self) -> str:
        """Base32; empty for what has none."""

    def to_json(self) -> dict[str, object]:
        """The shape that 1.20's web API gives. [spec placement 9]"""


H = TypeVar("H", bound=Health)


@frozen(kw_only=True)
class RepairResult(Generic[H]):
    """attempted: the file was not healthy. successful: it is now. before, after: the health then and now."""

    attempted: bool
    successful: bool
    before: H
    after: H

    def to_json(self) -> dict[str, object]:
        """The shape that 1.20's web API gives. [spec placement 10]"""
        return {
            "storage-index": self.before.storage_index,
            "repair-attempted": self.attempted,
            "repair-successful": self.successful,
            "pre-repair-results": self.before.to_json(),
            "post-repair-results": self.after.to_json(),
        }
