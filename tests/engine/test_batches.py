"""Batches of a read."""

from __future__ import annotations

import pytest

from grid.engine.batches import READ_BYTES, WIDE_SHARES, full_read_bytes


@pytest.mark.parametrize(("k", "factor"), [(1, 1), (WIDE_SHARES, 1), (WIDE_SHARES + 1, 2), (256, 2)])
def test_full_read_when_many_shares_are_needed_is_wide(k: int, factor: int) -> None:
    assert full_read_bytes(k) == factor * READ_BYTES
