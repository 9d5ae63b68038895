"""Samples and nodes for the harness's own tests, whose numbers nobody reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.perf.everything import quick_samples
from tests.support.warm_nodes import warm_nodes


@pytest.fixture(autouse=True)
def quick_samples_and_nodes() -> Iterator[None]:
    with quick_samples(), warm_nodes():
        yield
