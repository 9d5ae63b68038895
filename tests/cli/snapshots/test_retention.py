"""Which snapshots a policy keeps: the rules by themselves, together, and the limits of durations; and what is wrong with the
newest.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from grid.caps import DirectoryCap, parse_cap
from grid.cli.snapshots.retention import Duration, Policy, apply_policy, find_problems
from grid.directory.snapshots import NAME_FORMAT, Snapshot, SnapshotNote, parse_name
from grid.errors import GridError

CAP = parse_cap("URI:DIR2-LIT:")
assert isinstance(CAP, DirectoryCap)


def snapshot(text: str, **note: object) -> Snapshot:
    moment = datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    assert isinstance(CAP, DirectoryCap)
    return Snapshot(name=moment.strftime(NAME_FORMAT), made_at=moment, cap=CAP, note=SnapshotNote(**note))  # type: ignore[arg-type]


def kept(snapshots: list[Snapshot], policy: Policy) -> list[str]:
    return [each.snapshot.name[:16].replace("_", " ") for each in apply_policy(snapshots, policy, NOW) if each.is_kept]


NOW = datetime(2026, 4, 1, tzinfo=UTC)

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)

WEEKS = [snapshot(f"2026-03-{day:02} 03:00") for day in range(1, 32)]


def test_last_keeps_as_many_as_it_says() -> None:
    assert kept(WEEKS, Policy(counts={"last": 2})) == ["2026-03-30 03:00", "2026-03-31 03:00"]


def test_daily_keeps_the_newest_of_each_day_and_skips_days_without_any() -> None:
    found = [
        snapshot(text) for text in ("2026-03-01 01:00", "2026-03-01 23:59", "2026-03-05 00:00", "2026-03-05 12:00")
    ]
    assert kept(found, Policy(counts={"daily": 2})) == ["2026-03-01 23:59", "2026-03-05 12:00"]


def test_weekly_counts_weeks_from_monday() -> None:
    assert kept(WEEKS, Policy(counts={"weekly": 2})) == ["2026-03-29 03:00", "2026-03-31 03:00"]


def test_rule_with_more_periods_than_snapshots_keeps_the_oldest_as_well() -> None:
    assert kept(WEEKS, Policy(counts={"monthly": 3})) == ["2026-03-01 03:00", "2026-03-31 03:00"]
    assert kept(WEEKS, Policy(counts={"monthly": 1})) == ["2026-03-31 03:00"]


def test_year_at_its_turn_is_that_of_the_week_for_weeks_and_of_the_date_for_years() -> None:
    found = [snapshot("2025-12-28 00:00"), snapshot("2025-12-31 00:00"), snapshot("2026-01-01 00:00")]
    assert kept(found, Policy(counts={"weekly": 1})) == ["2026-01-01 00:00"]
    assert kept(found, Policy(counts={"yearly": 2})) == ["2025-12-31 00:00", "2026-01-01 00:00"]


def test_rules_add_up_and_say_why() -> None:
    verdicts = apply_policy(WEEKS, Policy(counts={"last": 1, "daily": 2}, within=Duration.parse("2d")), NOW)
    reasons = {each.snapshot.name[:10]: each.reasons for each in verdicts if each.is_kept}
    assert reasons == {
        "2026-03-29": ("within 2d",),
        "2026-03-30": ("daily snapshot", "within 2d"),
        "2026-03-31": ("last snapshot", "daily snapshot", "within 2d"),
    }


def test_machines_and_directories_are_counted_apart() -> None:
    found = [
        snapshot("2026-03-01 00:00", host="a", directory="/x"),
        snapshot("2026-03-02 00:00", host="b", directory="/x"),
        snapshot("2026-03-03 00:00", host="a", directory="/y"),
        snapshot("2026-03-04 00:00", host="a", directory="/x"),
    ]
    assert kept(found, Policy(counts={"last": 1})) == ["2026-03-02 00:00", "2026-03-03 00:00", "2026-03-04 00:00"]


def test_tag_keeps_what_has_it() -> None:
    found = [snapshot("2026-03-01 00:00", tags=("keep",)), snapshot("2026-03-02 00:00"), snapshot("2026-03-03 00:00")]
    policy = Policy(counts={"last": 1}, tags=frozenset(["keep"]))
    assert kept(found, policy) == ["2026-03-01 00:00", "2026-03-03 00:00"]


@pytest.mark.parametrize(
    ("text", "months", "rest"),
    [
        ("7d", 0, timedelta(days=7)),
        ("1y6m", 18, timedelta()),
        ("2y3m4d5h", 27, timedelta(days=4, hours=5)),
        ("0h", 0, timedelta()),
    ],
)
def test_duration_when_well_formed_is_understood(text: str, months: int, rest: timedelta) -> None:
    assert Duration.parse(text) == Duration(text, months, rest)


@pytest.mark.parametrize("text", ["", "d", "7", "7w", "1d1y", "-1d", "1.5d", "7d ", "10000d", "9" * 5000 + "d"])
def test_duration_when_malformed_is_refused(text: str) -> None:
    with pytest.raises(GridError):
        Duration.parse(text)


def test_duration_back_to_a_day_that_the_month_lacks_is_its_last_day() -> None:
    moment = datetime(2026, 3, 31, 12, tzinfo=UTC)
    assert Duration.parse("1m").before(moment) == datetime(2026, 2, 28, 12, tzinfo=UTC)
    assert Duration.parse("9999y").before(moment) == datetime.min.replace(tzinfo=UTC)
    assert Duration.parse("2025y9999d").before(moment) == datetime.min.replace(tzinfo=UTC)


@pytest.mark.parametrize("name", ["", "Latest", "2026-03-01", "2026-3-1_00:00:00Z", "2026-02-30_00:00:00Z", "x" * 5000])
def test_name_that_no_backup_gave_is_not_a_snapshot(name: str) -> None:
    assert parse_name(name) is None
    assert parse_name("2026-03-01_00:00:00Z") == datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "policy", [Policy(counts={"last": 2}), Policy(within=Duration.parse("1d")), Policy(counts={"daily": 2})]
)
def test_snapshot_from_the_future_stays_and_takes_the_place_of_no_other(policy: Policy) -> None:
    future = [snapshot("2026-04-01 01:01"), snapshot("2099-01-01 00:00")]
    assert kept([*WEEKS, *future], policy) == [*kept(WEEKS, policy), "2026-04-01 01:01", "2099-01-01 00:00"]
    assert kept(future, policy) == ["2026-04-01 01:01", "2099-01-01 00:00"]
    soon = snapshot("2026-04-01 01:00")
    assert "2026-03-30 03:00" not in kept([*WEEKS, soon], Policy(counts={"last": 2}))


def made(hours_ago: float, *, is_complete: bool = True) -> Snapshot:
    moment = NOON - timedelta(hours=hours_ago)
    assert isinstance(CAP, DirectoryCap)
    return Snapshot(
        name=moment.strftime(NAME_FORMAT), made_at=moment, cap=CAP, note=SnapshotNote(is_complete=is_complete)
    )


@pytest.mark.parametrize(
    ("snapshots", "expected"),
    [
        ([], ["there is no snapshot"]),
        ([made(26)], []),
        ([made(27)], ["the newest complete snapshot, 2026-03-09_09:00:00Z, is older than 26h"]),
        ([made(2), made(1, is_complete=False)], ["the newest snapshot, 2026-03-10_11:00:00Z, is incomplete"]),
        ([made(2, is_complete=False), made(1)], []),
        (
            [made(1, is_complete=False)],
            ["the newest snapshot, 2026-03-10_11:00:00Z, is incomplete", "no snapshot is complete"],
        ),
        (
            [made(50), made(1, is_complete=False)],
            [
                "the newest snapshot, 2026-03-10_11:00:00Z, is incomplete",
                "the newest complete snapshot, 2026-03-08_10:00:00Z, is older than 26h",
            ],
        ),
        ([made(-0.5)], []),
        ([made(-2)], ["there is no snapshot"]),
        ([made(30), made(-2)], ["the newest complete snapshot, 2026-03-09_06:00:00Z, is older than 26h"]),
    ],
)
def test_problems_are_those_of_the_newest_snapshot_that_no_wrong_clock_made(
    snapshots: list[Snapshot], expected: list[str]
) -> None:
    assert find_problems(snapshots, Duration.parse("26h"), NOON) == expected
