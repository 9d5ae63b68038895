"""The whole harness over Grid's processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from perf.campaigns.campaign import Encoding
from perf.network.contract import Placement
from perf.systems.contract import Fetch
from perf.systems.grid import GridSystem
from tests.perf.everything import EVERYTHING, everything, expect_all


@pytest.mark.parametrize("system", [pytest.param("grid@foolscap", marks=pytest.mark.deep), "grid@http+zfec+undurable"])
def test_grid_does_all_that_campaigns_ask(tmp_path: Path, system: str) -> None:
    record = everything(tmp_path, system)
    expect_all(record, "zfec" if "zfec" in system else "isal")
    puts = [sample for sample in record.samples if sample.scenario == "put"]
    assert all(sample.requests and sample.requests >= EVERYTHING.servers for sample in puts)


def test_gateway_of_grid_when_asked_puts_and_gets_what_the_library_sees_too(tmp_path: Path) -> None:
    encoding = Encoding(needed=2, happy=2, total=3)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(bytes(range(256)) * 1000)
    system = GridSystem("grid")
    try:
        system.start(tmp_path / "work", 3, [encoding], Placement())
        (cap,), usage = system.put("gateway", encoding, [source], 1)
        assert usage.client_peak_rss and usage.client_peak_rss > 0
        for client in ("gateway", "warm"):
            system.get(client, encoding, [Fetch(cap=cap, target=target)], 1)
            assert target.read_bytes() == source.read_bytes()
            target.unlink()
    finally:
        system.stop()
