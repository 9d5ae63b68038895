"""The plot in the README shows what the records say."""

from __future__ import annotations

import runpy
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_pictures.py"


def test_bars_when_taken_from_the_records_agree_with_the_performance_page() -> None:
    script = runpy.run_path(str(SCRIPT))
    bars = script["bars"]()
    assert len(bars) == len(script["BARS"]) * len(script["SYSTEMS"])
    ratios = {(label, system): f"{ratio.median:.2f}" for label, system, ratio in bars}
    page = (SCRIPT.parents[1] / "docs" / "performance" / "README.md").read_text()
    for label in ("get 100 MB", "put 100 MB", "put 100 files of 1 MB"):
        (row,) = [
            line
            for line in page.splitlines()
            if line.startswith((f"| {label} |", f"| {label},")) and "MDMF" not in line and "60-of" not in line
        ]
        assert f"| {ratios[label, 'grid@http']} [" in row
        assert f"| {ratios[label, 'grid@foolscap']} [" in row
