"""Finding out whose code a campaign would measure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perf.__main__ import main
from perf.processes.node_process import child_environment
from perf.records.likeness import MACHINE
from perf.sampling.environment import ROOT, capture, describe, expect_own_tree, parse_described


@pytest.fixture
def other_tree(tmp_path: Path) -> Path:
    """A place with another `grid` than ours."""
    (tmp_path / "grid").mkdir()
    (tmp_path / "grid" / "__init__.py").touch()
    return tmp_path


def test_own_tree_when_children_import_what_we_import_is_measured() -> None:
    expect_own_tree()


def test_own_tree_when_children_import_another_is_refused_and_both_are_named(other_tree: Path) -> None:
    with pytest.raises(
        ValueError, match=f"nodes would run {other_tree / 'grid'}, but this is .*grid: .*pip install -e"
    ):
        expect_own_tree(children={**child_environment(), "PYTHONPATH": str(other_tree)})


def test_own_tree_when_we_import_another_is_refused_and_both_are_named(other_tree: Path) -> None:
    (other_tree / "setup.cfg").touch()
    with pytest.raises(ValueError, match=f"this would measure {other_tree}, and the record would name .* of {ROOT}:"):
        expect_own_tree(other_tree / "src" / "grid" / "__init__.py")


@pytest.mark.parametrize("arguments", [["run", "smoke"], ["soak", "--batches", "1"]])
def test_campaign_when_children_would_import_another_tree_never_starts(
    arguments: list[str],
    other_tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    children = {**child_environment(), "PYTHONPATH": str(other_tree)}
    monkeypatch.setattr("perf.sampling.environment.child_environment", lambda: children)
    record = tmp_path / "record"
    assert main([*arguments, "--output", str(record)]) == 1
    assert capsys.readouterr().err.startswith("perf: nodes would run ")
    assert not record.exists()


def test_all_that_makes_machines_alike_is_recorded(tmp_path: Path) -> None:
    assert set(MACHINE) <= capture(tmp_path).keys()


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"modified": True, "load": 12.34, "nice": -5, "hashing": "lanes"},
        {"cpu": "Intel(R) Xeon(R), 4 cores (old), 3 GiB, @ 2.20GHz", "tahoe": "tahoe-lafs/1.20.0\nmore."},
        dict.fromkeys(
            ("commit", "cpu", "cpu_count", "memory_bytes", "filesystem", "system", "python", "codec", "tahoe")
        ),
        {"commit": "0" * 40, "memory_bytes": 24 * 2**30 + 5, "codec": "isal", "tahoe": None},
    ],
)
def test_described_environment_when_parsed_is_described_alike(changed: dict[str, Any], tmp_path: Path) -> None:
    text = describe({**capture(tmp_path), **changed})
    parsed = parse_described(text)
    assert describe(parsed) == text
    assert parsed["modified"] == (" (modified)" in text)
    assert None not in parsed.values()


@pytest.mark.parametrize(
    ("old", "new"), [(".", ""), ("load 1.5", "load high"), ("2 cores", "two cores"), (", nice", "")]
)
def test_text_that_describes_no_environment_is_refused(old: str, new: str) -> None:
    text = describe({"date": "2026-01-01", "commit": "0" * 40, "cpu_count": 2, "load": 1.5, "tahoe": "1.20.0"})
    with pytest.raises(ValueError, match=r"."):
        parse_described(text.replace(old, new))
