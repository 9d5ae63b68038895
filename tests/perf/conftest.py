"""Samples of the harness's own tests, whose numbers nobody reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.perf.everything import quick_samples


@pytest.fixture(autouse=True)
def samples_without_preparation() -> Iterator[None]:
    with quick_samples():
        yield
