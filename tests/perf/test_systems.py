"""The whole harness over Grid's processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.everything import EVERYTHING, everything, expect_all


@pytest.mark.parametrize("system", ["grid@foolscap", "grid@http+zfec+undurable"])
def test_grid_does_all_that_campaigns_ask(tmp_path: Path, system: str) -> None:
    record = everything(tmp_path, system)
    expect_all(record, "zfec" if "zfec" in system else "isal")
    puts = [sample for sample in record.samples if sample.scenario == "put"]
    assert all(sample.requests and sample.requests >= EVERYTHING.servers for sample in puts)
