"""The demonstration's description of its steps; `make demo` itself needs real nodes."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parent.parent / "scripts" / "demo.py"


@pytest.mark.parametrize(
    ("size", "said"),
    [(128_000_000, "put x: 128000000 bytes in 2.00 s, 64.0 MB/s"), (1000, "put x: 1000 bytes in 2.00 s")],
)
def test_step_when_reported_has_a_speed_only_where_bytes_took_the_time(
    size: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(DEMO))["_report"]("put x", size, 2.0)
    assert capsys.readouterr().out == said + "\n"
