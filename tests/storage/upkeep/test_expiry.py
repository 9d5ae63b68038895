"""When leases end, and the totals of a report."""

from __future__ import annotations

import json

import pytest

from grid.ports import ShareKind
from grid.storage.files.leases import PERIOD_S, Lease
from grid.storage.settings import ExpirySettings
from grid.storage.upkeep import expiry
from grid.storage.upkeep.expiry import ExaminedShare

NOW = 1_700_000_000.0
DAY = 86400


def granted(days_ago: float) -> Lease:
    return Lease(owner=1, expires=int(NOW - days_ago * DAY) + PERIOD_S, renew=bytes(32), cancel=bytes(32))


@pytest.mark.parametrize(
    ("settings", "days_ago", "expected"),
    [
        (ExpirySettings(), 30.9, False),
        (ExpirySettings(), 31.1, True),
        (ExpirySettings(override_s=60 * DAY), 59, False),
        (ExpirySettings(override_s=60 * DAY), 61, True),
        (ExpirySettings(override_s=0), 0.1, True),
        (ExpirySettings(mode="cutoff-date", cutoff=int(NOW) - 10 * DAY), 9, False),
        (ExpirySettings(mode="cutoff-date", cutoff=int(NOW) - 10 * DAY), 11, True),
        (ExpirySettings(mode="cutoff-date", cutoff=int(NOW) - 10 * DAY, override_s=1), 9, False),
    ],
)
def test_lease_when_past_what_the_settings_say_has_expired(
    settings: ExpirySettings, days_ago: float, expected: bool
) -> None:
    for kind in ("immutable", "mutable"):
        kinds: ShareKind = "immutable" if kind == "immutable" else "mutable"
        assert expiry.is_expired(granted(days_ago), kinds, settings, NOW) is expected


def test_lease_when_its_kind_is_switched_off_never_expires() -> None:
    settings = ExpirySettings(immutable=False)
    assert not expiry.is_expired(granted(1000), "immutable", settings, NOW)
    assert expiry.is_expired(granted(1000), "mutable", settings, NOW)


def examined(kind: ShareKind, *ages: float, removed: bool = False, configured: bool = False) -> ExaminedShare:
    return ExaminedShare(
        kind=kind,
        share_size=1000,
        disk_size=4096,
        lease_ages_s=ages,
        removed=removed,
        expired_as_configured=configured,
        expired_as_granted=False,
    )


def test_report_when_shares_are_noted_adds_them_up() -> None:
    report = expiry.new_report(ExpirySettings(enabled=True, override_s=5, immutable=False))
    assert report["configured-expiration-mode"] == ["age", 5, None, ["mutable"]]
    assert report["expiration-enabled"]
    assert len(report["space-recovered"]) == 48
    first = [examined("immutable", 5.0, 90_000.0), examined("immutable", 90_001.0, removed=True, configured=True)]
    expiry.note_shares(report, first)
    expiry.note_shares(report, [examined("mutable", -5.0, removed=True, configured=True)])
    expiry.note_shares(report, [])
    found = {key: amount for key, amount in report["space-recovered"].items() if amount}
    assert found == {
        "examined-buckets": 2, "examined-buckets-immutable": 1, "examined-buckets-mutable": 1,
        "examined-shares": 3, "examined-shares-immutable": 2, "examined-shares-mutable": 1,
        "examined-sharebytes": 3000, "examined-sharebytes-immutable": 2000, "examined-sharebytes-mutable": 1000,
        "examined-diskbytes": 12288, "examined-diskbytes-immutable": 8192, "examined-diskbytes-mutable": 4096,
        "actual-buckets": 1, "actual-buckets-mutable": 1,
        "actual-shares": 2, "actual-shares-immutable": 1, "actual-shares-mutable": 1,
        "actual-sharebytes": 2000, "actual-sharebytes-immutable": 1000, "actual-sharebytes-mutable": 1000,
        "actual-diskbytes": 8192, "actual-diskbytes-immutable": 4096, "actual-diskbytes-mutable": 4096,
        "configured-buckets": 1, "configured-buckets-mutable": 1,
        "configured-shares": 2, "configured-shares-immutable": 1, "configured-shares-mutable": 1,
        "configured-sharebytes": 2000, "configured-sharebytes-immutable": 1000, "configured-sharebytes-mutable": 1000,
        "configured-diskbytes": 8192, "configured-diskbytes-immutable": 4096, "configured-diskbytes-mutable": 4096,
    }  # fmt: skip
    assert report["lease-age-histogram"] == [[0, DAY, 2], [DAY, 2 * DAY, 2]]
    assert report["leases-per-share-histogram"] == {"2": 1, "1": 2}
    assert expiry.estimated(report, 0.25)["examined-shares"] == 12


def test_report_when_saved_and_loaded_can_be_continued() -> None:
    report = expiry.new_report(ExpirySettings())
    expiry.note_shares(report, [examined("immutable", 5.0)])
    again = json.loads(json.dumps(report))
    assert expiry.is_report(again)
    expiry.note_shares(again, [examined("immutable", 5.0)])
    assert again["lease-age-histogram"] == [[0, DAY, 2]]
    assert again["leases-per-share-histogram"] == {"1": 2}


def test_report_when_its_fields_have_other_types_is_ignored() -> None:
    good = expiry.new_report(ExpirySettings())
    assert expiry.is_report(good)
    bad_values = {
        "corrupt-shares": {},
        "space-recovered": {"actual-shares": 1},
        "lease-age-histogram": [[1, 2]],
        "leases-per-share-histogram": {"1": "many"},
    }
    for key, bad in bad_values.items():
        assert not expiry.is_report({**good, key: bad})
        assert not expiry.is_report({name: value for name, value in good.items() if name != key})
    assert not expiry.is_report(None)


def test_corrupt_shares_when_very_many_are_named_up_to_a_bound() -> None:
    report = expiry.new_report(ExpirySettings())
    for index in range(10):
        expiry.note_corrupt(report, f"name{index}", range(256))
    assert len(report["corrupt-shares"]) == expiry.MAX_CORRUPT_NOTED
    assert report["corrupt-shares"][0] == ["name0", 0]
