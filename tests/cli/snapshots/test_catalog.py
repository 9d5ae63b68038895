"""Finding the snapshot that a user names."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from grid.caps import DirectoryCap, parse_cap
from grid.cli.snapshots.catalog import Catalog
from grid.directory.pack import Target
from grid.directory.snapshots import Snapshot

FIRST, SECOND = (cast(DirectoryCap, parse_cap(f"URI:DIR2-LIT:{text}")) for text in ("", "ge"))


def catalog(latest: Target | None) -> Catalog:
    moment = datetime(2026, 4, 1, tzinfo=UTC)
    snapshots = [
        Snapshot(name="2026-04-01_00:00:00Z", made_at=moment, cap=FIRST),
        Snapshot(name="2036-04-01_00:00:00Z", made_at=moment.replace(year=2036), cap=SECOND),
    ]
    nothing = cast(Any, None)
    return Catalog(path=nothing, root=FIRST, archives=FIRST, snapshots=snapshots, latest=latest)


def test_latest_is_the_last_snapshot_made_although_a_clock_was_ahead_once() -> None:
    assert catalog(FIRST).choose("latest").cap == FIRST
    assert catalog(SECOND).choose("latest").cap == SECOND


def test_latest_without_a_link_of_that_name_is_the_newest() -> None:
    assert catalog(None).choose("latest").cap == SECOND
    assert catalog(None).choose("2026").cap == FIRST
