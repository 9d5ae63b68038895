"""Real nodes that are killed and started again, dozens of times."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.warm_nodes import warm_nodes


@pytest.fixture(scope="module", autouse=True)
def nodes_that_start_warm() -> Iterator[None]:
    with warm_nodes():
        yield
