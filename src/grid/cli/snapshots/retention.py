"""Decides which snapshots a policy keeps, and why; and whether the newest is as good and as new as it should be. Pure.

Each rule scans the snapshots from the newest to the oldest and keeps the newest of each hour, day, week, month or year,
up to its count. A rule with fewer periods than its count also keeps the oldest snapshot. A snapshot stays if any rule
keeps it. Days, weeks (from Monday) and so on refer to the snapshots' names, which are in UTC.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from grid.directory.snapshots import Snapshot
from grid.errors import GridError
from grid.values import field, frozen

AHEAD = timedelta(hours=1)
"""How far clocks of several machines may differ."""

UNLIMITED = 10**9
"""More snapshots than anybody has."""

_DURATION = re.compile(r"(?:([0-9]{1,4})y)?(?:([0-9]{1,4})m)?(?:([0-9]{1,4})d)?(?:([0-9]{1,4})h)?")

_PERIODS: Mapping[str, Callable[[datetime], object]] = {
    "last": lambda when: when,
    "hourly": lambda when: (when.date(), when.hour),
    "daily": lambda when: when.date(),
    "weekly": lambda when: when.isocalendar()[:2],
    "monthly": lambda when: (when.year, when.month),
    "yearly": lambda when: when.year,
}

RULES = tuple(_PERIODS)
"""The rules that count, in the order in which reasons are given."""


@frozen
class Duration:
    """A span of calendar time, such as `1y6m7d12h`."""

    text: str
    months: int
    rest: timedelta

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Parse a duration; GridError."""
        found = _DURATION.fullmatch(text)
        if not text or found is None:
            raise GridError(
                f"{text!r} is not a duration: write years, months, days and hours, up to 9999 of each, as in 1y6m7d12h"
            )
        numbers = [int(number or 0) for number in found.groups()]
        years, months, days, hours = numbers
        return cls(text, 12 * years + months, timedelta(days=days, hours=hours))

    def before(self, moment: datetime) -> datetime:
        """The moment that much earlier. If the month has no such day, its last day."""
        month = moment.year * 12 + moment.month - 1 - self.months
        year, index = divmod(month, 12)
        if year < 1:
            return datetime.min.replace(tzinfo=UTC)
        day = min(moment.day, calendar.monthrange(year, index + 1)[1])
        try:
            return moment.replace(year=year, month=index + 1, day=day) - self.rest
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)


@frozen(kw_only=True)
class Policy:
    """How many snapshots each rule keeps. within: keep all made within this time before the newest."""

    counts: Mapping[str, int] = field(factory=dict)
    within: Duration | None = None
    tags: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether no rule keeps anything."""
        return not self.counts and self.within is None and not self.tags


@frozen
class Verdict:
    """A snapshot and the reasons to keep it; without reasons it is removed."""

    snapshot: Snapshot
    reasons: tuple[str, ...]

    @property
    def is_kept(self) -> bool:
        """Whether any rule keeps it."""
        return bool(self.reasons)


def apply_policy(snapshots: Iterable[Snapshot], policy: Policy, now: datetime) -> list[Verdict]:
    """The verdict on each snapshot, oldest first; each machine and directory is judged separately.

    A snapshot from the future stays and counts for no rule: a clock was wrong, and it would be the newest for years.
    """
    groups: dict[tuple[str, str], list[Snapshot]] = {}
    for snapshot in snapshots:
        groups.setdefault(snapshot.group, []).append(snapshot)
    verdicts = []
    for group in groups.values():
        past = [each for each in group if each.made_at <= now + AHEAD]
        verdicts += [Verdict(each, ("in the future",)) for each in group if each.made_at > now + AHEAD]
        verdicts += _judge(past, policy) if past else []
    return sorted(verdicts, key=lambda verdict: verdict.snapshot.name)


def _judge(group: Sequence[Snapshot], policy: Policy) -> list[Verdict]:
    newest_first = sorted(group, key=lambda snapshot: snapshot.name, reverse=True)
    reasons: dict[str, list[str]] = {snapshot.name: [] for snapshot in newest_first}
    for rule, count in policy.counts.items():
        for snapshot in _kept_by(rule, count, newest_first):
            reasons[snapshot.name].append(f"{rule} snapshot")
    if policy.within is not None:
        oldest = policy.within.before(newest_first[0].made_at)
        for snapshot in newest_first:
            if snapshot.made_at >= oldest:
                reasons[snapshot.name].append(f"within {policy.within.text}")
    for snapshot in newest_first:
        reasons[snapshot.name] += [f"tag {tag}" for tag in sorted(policy.tags & set(snapshot.note.tags))]
    return [Verdict(snapshot, tuple(reasons[snapshot.name])) for snapshot in newest_first]


def _kept_by(rule: str, count: int, newest_first: Sequence[Snapshot]) -> list[Snapshot]:
    period_of = _PERIODS[rule]
    kept: list[Snapshot] = []
    previous: object = None
    for snapshot in newest_first:
        period = period_of(snapshot.made_at)
        is_oldest = snapshot is newest_first[-1]
        if len(kept) < count and (period != previous or is_oldest):
            kept.append(snapshot)
        previous = period
    return kept


def find_problems(snapshots: Sequence[Snapshot], max_age: Duration, now: datetime) -> list[str]:
    """What is wrong with the newest of these snapshots, for people; empty if it is complete and not older than max_age.

    A snapshot from the future counts as none: a clock was wrong, and it would seem new for years.
    """
    past = sorted((each for each in snapshots if each.made_at <= now + AHEAD), key=lambda each: each.made_at)
    if not past:
        return ["there is no snapshot"]
    problems = []
    if not past[-1].note.is_complete:
        problems.append(f"the newest snapshot, {past[-1].name}, is incomplete")
    complete = [each for each in past if each.note.is_complete]
    if not complete:
        problems.append("no snapshot is complete")
    elif complete[-1].made_at < max_age.before(now):
        problems.append(f"the newest complete snapshot, {complete[-1].name}, is older than {max_age.text}")
    return problems
