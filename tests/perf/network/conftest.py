"""Requirements of network tests; without them a test is skipped, and says what is missing."""

from __future__ import annotations

import pytest

from perf.network.doctor import LINE_NEEDS, missing


def expect(*names: str) -> None:
    """Skip the test unless these facts hold."""
    lacking = missing(names)
    if lacking:
        pytest.skip("; ".join(f"{fact.name} is missing ({fact.advice})" for fact in lacking))


def expect_distributed() -> None:
    """Skip the test unless dask.distributed is installed."""
    pytest.importorskip("distributed", reason="dask.distributed is not installed (extra: perf)")


@pytest.fixture
def line_possible() -> None:
    """This machine can have an emulated line."""
    expect(*LINE_NEEDS)
