"""The lines of `ls`, by the tables of [spec cli 2.3]."""

from __future__ import annotations

import time

import pytest

from grid.caps import KnownCap, UnknownChild, parse_cap
from grid.cli.commands.ls import Columns, listing_lines
from grid.directory.pack import Child

CHK = "URI:CHK:igjjochnzpummx6fh6hugl52b4:6nacay6an2e3hqve7dklbv7tqxyxkqeirbwzhslygj4p24ih6dmq:3:10:75"
SSK = "URI:SSK:prwxby42av6kvcawg5rwbbvshm:texgssrba2hrhv5qwhb3o7guaybaixwrk36gg6lladuwb66rszba"
DIR = "URI:DIR2:prwxby42av6kvcawg5rwbbvshm:texgssrba2hrhv5qwhb3o7guaybaixwrk36gg6lladuwb66rszba"
NOW = 1_795_241_696.0


def _child(text: str, metadata: dict[str, object] | None = None) -> Child:
    cap = parse_cap(text)
    assert isinstance(cap, KnownCap)
    return Child(target=cap, metadata=metadata or {})


CHILDREN = {
    "z file": _child(CHK, {"tahoe": {"linkcrtime": NOW - 60}, "ctime": 1}),
    "dir": _child(DIR, {"ctime": NOW - 400 * 86400}),
    "mutable": _child(SSK),
    "odd": Child(target=UnknownChild(read=b"ro.lafs://future")),
}


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def test_names_when_alone_then_are_sorted_and_left_aligned() -> None:
    assert listing_lines(CHILDREN, Columns(), NOW) == ["dir", "mutable", "odd", "z file"]


def test_names_when_classified_then_have_marks() -> None:
    assert listing_lines(CHILDREN, Columns(classify=True), NOW) == ["dir/", "mutable*", "odd?", "z file"]


def test_long_listing_then_has_mode_size_date_and_name_right_aligned() -> None:
    made = time.strftime("%b %d %H:%M", time.gmtime(NOW - 60))
    old = time.strftime("%b %d  %Y", time.gmtime(NOW - 400 * 86400))
    assert listing_lines(CHILDREN, Columns(long=True), NOW) == [
        f"drwx  - {old}     dir",
        f"-rw-  ? {'-':>12} mutable",
        f"?r--  ? {'-':>12}     odd",
        f"-r-- 75 {made}  z file",
    ]


def test_capabilities_when_asked_for_then_are_left_aligned() -> None:
    lines = listing_lines(CHILDREN, Columns(uri=True, readonly_uri=True), NOW)
    assert [line.split()[-2] for line in lines] == [DIR, SSK, "ro.lafs://future", CHK]
    assert lines[1].split()[-1].startswith("URI:SSK-RO:")
    assert len({line.index("URI") for line in lines if "URI" in line}) == 1


@pytest.mark.parametrize("when", ["soon", True, 1e300, float("nan"), None, -1e18])
def test_date_when_missing_then_is_a_dash(when: object) -> None:
    (line,) = listing_lines({"x": _child(CHK, {"tahoe": {"linkcrtime": when}})}, Columns(long=True), NOW)
    assert line == "-r-- 75 - x"


def test_name_when_it_would_break_the_line_then_is_escaped() -> None:
    assert listing_lines({"a\nb\x1b[2J": _child(CHK)}, Columns(), NOW) == ['"a\\nb\\x1b[2J"']


def test_empty_directory_when_listed_then_has_no_lines() -> None:
    assert listing_lines({}, Columns(long=True), NOW) == []
