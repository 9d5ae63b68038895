"""Attributes: those stored in metadata come back, and hostile metadata does no harm."""

from __future__ import annotations

import pytest

from grid.caps import DirectoryCap, KnownCap, LitCap, parse_cap
from grid.sftp.attributes import changed_metadata, facts_of

FILE = LitCap(data=b"x")
SOME = ":aaaaaaaaaaaaaaaaaaaaaaaaaa:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"


def directory(kind: str) -> KnownCap:
    """A directory's capability of that kind."""
    found = parse_cap(f"URI:{kind}{SOME}")
    assert isinstance(found, DirectoryCap)
    return found


def test_attributes_when_they_are_set_come_back() -> None:
    kept = changed_metadata({"mine": 1, "tahoe": {}}, {"permissions": 0o100640, "mtime": 5, "atime": 6, "uid": 7})
    assert kept == {"mine": 1, "mode": 0o640, "mtime": 5, "atime": 6}
    wire = facts_of(FILE, kept, 1).to_wire()
    assert wire == {"permissions": 0o100640, "uid": 0, "gid": 0, "atime": 6, "mtime": 5, "size": 1}


@pytest.mark.parametrize(
    "hostile",
    [
        {"mode": "rwx", "mtime": "now", "atime": [], "tahoe": 7},
        {"mode": True, "mtime": -5.0, "atime": 1e300, "tahoe": {"linkmotime": {}}},
        {"mode": 2**70, "mtime": 2.0**39, "atime": None, "tahoe": []},
    ],
)
def test_metadata_when_they_are_hostile_give_attributes_that_fit(hostile: dict[str, object]) -> None:
    wire = facts_of(FILE, hostile, 1).to_wire()
    assert all(0 <= value < 2**32 for value in wire.values())
    assert facts_of(FILE, hostile, 1).long_name("name").endswith(" name")


def test_attributes_when_the_capability_only_reads_permit_no_writing() -> None:
    assert facts_of(directory("DIR2-RO"), {"mode": 0o777}, None).to_wire()["permissions"] == 0o040555
    assert facts_of(directory("DIR2"), {}, None).to_wire()["permissions"] == 0o040777
    assert facts_of(FILE, {"no-write": True}, 1).to_wire()["permissions"] == 0o100444


def test_time_when_none_is_kept_is_that_of_the_link() -> None:
    facts = facts_of(FILE, {"tahoe": {"linkmotime": 1_700_000_000.5}}, 1)
    assert facts.mtime == facts.atime == 1_700_000_000
