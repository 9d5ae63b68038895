"""An older commit beside this one in a campaign, in its own environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from perf.processes.installation import OWN, install_baseline, resolve
from perf.reports.report import report
from tests.perf.everything import everything

pytestmark = pytest.mark.packaging


@pytest.mark.nightly("tests/perf/test_systems.py::test_grid_does_all_that_campaigns_ask")
def test_commit_beside_this_tree_does_all_that_campaigns_ask(tmp_path: Path) -> None:
    record = everything(tmp_path, "grid", "grid:HEAD")
    assert [sample.error for sample in record.failures()] == []
    assert len({sample.system for sample in record.samples}) == 2
    assert "| put 0.1 MB, 2-of-3, warm | grid |" in report(record)
    baseline = install_baseline("HEAD")
    assert baseline.tree != OWN.tree
    assert (baseline.tree / "setup.cfg").is_file()
    assert baseline.python != OWN.python


def test_commit_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no commit"):
        resolve("never-committed")
