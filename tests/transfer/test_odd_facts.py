"""Odd facts of one file, such as times that no calendar has: they are no reason to stop."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from grid.caps import LitCap
from grid.directory.pack import Child
from grid.transfer.ends import Body, Entry
from grid.transfer.grid_listing import entry_of, metadata_of
from grid.transfer.local_end import LocalEnd
from grid.transfer.object_end import _HEADER_NAME, _attributes, _with_attributes
from tests.transfer.test_engine import contents, send


def listed(**metadata: object) -> Entry:
    return entry_of("f", Child(target=LitCap(data=b""), metadata=metadata), 0, "")


@pytest.mark.parametrize("mtime_ns", [10**30, -(10**30), 10**400, True], ids=["late", "early", "endless", "bool"])
def test_time_of_a_link_that_is_none_is_ignored(mtime_ns: int) -> None:
    assert listed(mtime_ns=mtime_ns, mtime=5).mtime_ns == 5 * 10**9
    assert listed(mtime_ns=mtime_ns).mtime_ns is None
    assert "mtime" not in metadata_of(Entry(name="f", mtime_ns=mtime_ns))


def test_time_of_a_link_comes_back() -> None:
    for mtime_ns in (-1, 0, 10**18 + 1):
        assert listed(**metadata_of(Entry(name="f", mtime_ns=mtime_ns))).mtime_ns == mtime_ns


@pytest.mark.parametrize("text", ["1e20", "-1e20", "inf", "nan", "x"])
def test_time_of_an_object_that_is_none_is_ignored(text: str) -> None:
    assert _with_attributes(Entry(name="f", mtime_ns=7), {"mtime": text}).mtime_ns == 7


@pytest.mark.parametrize("mtime_ns", [-1_500_000_000, -1, 0, 1_500_000_000])
def test_time_of_an_object_comes_back(mtime_ns: int) -> None:
    kept = _attributes(Entry(name="f", mtime_ns=mtime_ns), _HEADER_NAME)
    assert _with_attributes(Entry(name="f"), kept).mtime_ns == mtime_ns


class _Odd(LocalEnd):
    """A source of which one file has a time that no calendar has."""

    async def open(self, entry: Entry) -> Any:
        opened: Any = await super().open(entry)
        if entry.name == "odd":
            opened.entry = Entry(name="odd", size=opened.entry.size, mtime_ns=10**30)
        return opened

    def reads_together(self, entry: Entry) -> bool:
        return False


class _Refusing(LocalEnd):
    """A target that cannot express something of one file."""

    error: Exception = OverflowError("too large")

    def stores_together(self, size: int) -> bool:
        return False

    async def store(self, entry: Entry, body: Body) -> str:
        if entry.name == "odd":
            raise self.error
        return await super().store(entry, body)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A directory of two files."""
    (tmp_path / "source").mkdir()
    for name in ("odd", "other"):
        (tmp_path / "source" / name).write_bytes(b"x")
    return tmp_path / "source"


@pytest.mark.parametrize("size", [1, 300_000])
def test_time_that_no_disk_keeps_becomes_another_one(source: Path, tmp_path: Path, size: int) -> None:
    (source / "odd").write_bytes(os.urandom(size))

    class Unlike(_Odd):
        async def open(self, entry: Entry) -> Any:
            opened = await super().open(entry)

            async def unchanged() -> None:
                """The listing and the open file agree."""

            opened.require_unchanged = unchanged
            return opened

    outcome = send(Unlike(str(source)), tmp_path / "target", tmp_path)
    assert not outcome.failures
    assert contents(tmp_path / "target") == contents(source)


@pytest.mark.parametrize("error", [OverflowError("too large"), ValueError("none")])
def test_error_of_a_value_is_one_of_its_file_alone(source: Path, tmp_path: Path, error: Exception) -> None:
    target = _Refusing(str(tmp_path / "target"))
    target.error = error
    outcome = send(source, target, tmp_path)
    assert [str(each) for _, each in outcome.failures] == [f"odd: {error}"]
    assert contents(tmp_path / "target") == {"other": b"x"}
