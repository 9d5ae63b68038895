"""Decides when a lease has expired, and reports what a pass over the shares found and removed. Pure. [spec storage-server 10.2, 10.4]"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from grid.ports import ShareKind
from grid.storage.files.leases import Lease
from grid.storage.settings import ExpirySettings
from grid.values import frozen

DAY_S = 86400
MAX_CORRUPT_NOTED = 1000
"""Most corrupt shares that a report names."""

_OUTCOMES = ("actual", "original", "configured", "examined")
_MEASURES = ("buckets", "shares", "sharebytes", "diskbytes")
_SUFFIXES = ("", "-mutable", "-immutable")

Report = dict[str, Any]
"""The report of a cycle so far, as stored in the state file."""


@frozen(kw_only=True)
class ExaminedShare:
    """One share as a pass found it, and whether it was removed, whether the settings would remove it, and whether its
    leases' original durations would.
    """

    kind: ShareKind
    share_size: int
    disk_size: int
    lease_ages_s: tuple[float, ...]
    removed: bool
    expired_as_configured: bool
    expired_as_granted: bool


def is_expired(lease: Lease, kind: ShareKind, settings: ExpirySettings, now: float) -> bool:
    """Whether the settings expire the lease, even if they are not enabled."""
    if not (settings.immutable if kind == "immutable" else settings.mutable):
        return False
    if settings.mode == "cutoff-date":
        return settings.cutoff is not None and lease.granted < settings.cutoff
    if settings.override_s is not None:
        return now - lease.granted > settings.override_s
    return has_run_out(lease, now)


def has_run_out(lease: Lease, now: float) -> bool:
    """Whether the lease's original duration is over."""
    return lease.expires < now


def new_report(settings: ExpirySettings) -> Report:
    """The report of a new cycle."""
    kinds = [kind for kind, on in (("mutable", settings.mutable), ("immutable", settings.immutable)) if on]
    return {
        "expiration-enabled": settings.enabled,
        "configured-expiration-mode": [settings.mode, settings.override_s, settings.cutoff, kinds],
        "corrupt-shares": [],
        "space-recovered": dict.fromkeys(map("".join, _recovery_keys()), 0),
        "lease-age-histogram": [],
        "leases-per-share-histogram": {},
    }


def is_report(value: object) -> bool:
    """Whether a value from a state file is a report that can be resumed."""
    if not isinstance(value, dict) or not isinstance(value.get("corrupt-shares"), list):
        return False
    recovered, leases = value.get("space-recovered"), value.get("leases-per-share-histogram")
    ages = value.get("lease-age-histogram")
    return (
        isinstance(recovered, dict)
        and all(isinstance(recovered.get("".join(key)), int) for key in _recovery_keys())
        and isinstance(leases, dict)
        and all(isinstance(count, int) for count in leases.values())
        and isinstance(ages, list)
        and all(isinstance(row, list) and len(row) == 3 and all(isinstance(n, int) for n in row) for row in ages)
    )


def note_shares(report: Report, shares: Iterable[ExaminedShare]) -> None:
    """Add what was found in one storage index to the report."""
    shares = list(shares)
    for share in shares:
        _note_leases(report, share)
        for outcome in _outcomes(share):
            sizes = {"shares": 1, "sharebytes": share.share_size, "diskbytes": share.disk_size}
            for measure, amount in sizes.items():
                _add(report, outcome, measure, share.kind, amount)
    if shares:
        for outcome in frozenset.intersection(*(_outcomes(share) for share in shares)):
            _add(report, outcome, "buckets", shares[-1].kind, 1)


def note_corrupt(report: Report, name: str, share_numbers: Iterable[int]) -> None:
    """Add shares that could not be read to the report."""
    noted = report["corrupt-shares"]
    noted += [[name, number] for number in share_numbers][: MAX_CORRUPT_NOTED - len(noted)]


def estimated(report: Report, done: float) -> Report:
    """Estimate the report of the whole cycle from the part of it (0 < done <= 1) that is done."""
    return {key: round(amount / done) for key, amount in report["space-recovered"].items()}


def _recovery_keys() -> Iterable[tuple[str, ...]]:
    return ((outcome, "-", measure, suffix) for outcome, measure, suffix in product(_OUTCOMES, _MEASURES, _SUFFIXES))


def _outcomes(share: ExaminedShare) -> frozenset[str]:
    named = {
        "examined": True,
        "original": share.expired_as_granted,
        "configured": share.expired_as_configured,
        "actual": share.removed,
    }
    return frozenset(name for name, holds in named.items() if holds)


def _add(report: Report, outcome: str, measure: str, kind: ShareKind, amount: int) -> None:
    for suffix in ("", f"-{kind}"):
        report["space-recovered"][f"{outcome}-{measure}{suffix}"] += amount


def _note_leases(report: Report, share: ExaminedShare) -> None:
    counts = report["leases-per-share-histogram"]
    key = str(len(share.lease_ages_s))
    counts[key] = counts.get(key, 0) + 1
    rows = {row[0]: row[2] for row in report["lease-age-histogram"]}
    for age in share.lease_ages_s:
        first = max(0, int(age)) // DAY_S * DAY_S
        rows[first] = rows.get(first, 0) + 1
    report["lease-age-histogram"] = [[first, first + DAY_S, count] for first, count in sorted(rows.items())]
