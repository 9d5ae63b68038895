"""The parts of a health report that all kinds of files have. Pure. [spec placement 9, 10]"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from grid.values import frozen

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
"""The numbers in the result of a check of anything that has shares."""


def crowding(reached: int, wanted: int, *, can_spread: bool) -> str:
    """The text to add to `Healthy` if fewer servers hold a share of their own than a safe file needs; otherwise "".

    can_spread: whether a repair helps.
    """
    if reached >= wanted:
        return ""
    servers = "1 server" if reached == 1 else f"{reached} servers"
    helps = (
        "repair spreads the shares over the available servers" if can_spread else "no other server takes a share now"
    )
    return f", but spread over only {servers} instead of {wanted}: {helps}"


class Crowdable(Protocol):
    """A result that says whether shares are on too few servers."""

    @property
    def healthy(self) -> bool:
        """Whether all shares are there."""

    @property
    def crowded(self) -> bool:
        """Whether shares are on too few servers."""

    @property
    def can_spread(self) -> bool:
        """Whether a repair can store some on others."""


def crowding_json(found: Crowdable) -> dict[str, bool]:
    """What to add to 1.20's results. Empty unless too few servers hold the shares: usually programs see the keys they know."""
    return {"crowded": True, "can-spread": found.can_spread} if found.healthy and found.crowded else {}


class Health(Protocol):
    """The result of a check."""

    @property
    def storage_index(self) -> str:
        """In base32; empty if there is none."""

    def to_json(self) -> dict[str, object]:
        """The JSON form of 1.20's web API. [spec placement 9]"""


H = TypeVar("H", bound=Health)


@frozen(kw_only=True)
class RepairResult(Generic[H]):
    """attempted: the file was not healthy. successful: it is now. before, after: the health then and now."""

    attempted: bool
    successful: bool
    before: H
    after: H

    def to_json(self) -> dict[str, object]:
        """The JSON form of 1.20's web API. [spec placement 10]"""
        return {
            "storage-index": self.before.storage_index,
            "repair-attempted": self.attempted,
            "repair-successful": self.successful,
            "pre-repair-results": self.before.to_json(),
            "post-repair-results": self.after.to_json(),
        }
