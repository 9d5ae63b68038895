"""The form of a health report."""

from __future__ import annotations

from attrs import frozen

from grid.placement.health import RepairResult


@frozen
class Finding:
    """The least that a check can find."""

    storage_index: str
    healthy: bool

    def to_json(self) -> dict[str, object]:
        return {"healthy": self.healthy}


def test_repair_when_reported_has_the_health_before_and_after() -> None:
    result = RepairResult(attempted=True, successful=False, before=Finding("si", False), after=Finding("other", True))
    assert result.to_json() == {
        "storage-index": "si",
        "repair-attempted": True,
        "repair-successful": False,
        "pre-repair-results": {"healthy": False},
        "post-repair-results": {"healthy": True},
    }
