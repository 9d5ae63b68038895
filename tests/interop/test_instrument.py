"""The benchmark harness over its own real Tahoe-LAFS 1.20 grids."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.everything import everything, expect_all
from tests.support.warm_programs import WarmGrid

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("system", ["tahoe@foolscap", pytest.param("tahoe@http", marks=pytest.mark.deep)])
def test_tahoe_does_all_that_campaigns_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str) -> None:
    monkeypatch.setattr("perf.systems.processes.ProcessGrid", WarmGrid)
    expect_all(everything(tmp_path, system), "zfec")
