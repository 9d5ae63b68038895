"""Names that no end may write: a quick look at most names must say what a thorough one says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.transfer.ends import MAX_NAME_BYTES, MAX_PATH_BYTES, refuse_name

PARTS = st.one_of(
    st.sampled_from(
        ["", ".", "..", "...", "a", ".a", "\0", "ü" * 130, "n" * MAX_NAME_BYTES, "n" * (MAX_NAME_BYTES + 1)]
    ),
    st.text(max_size=5),
)


@given(st.lists(PARTS, min_size=1, max_size=4).map("/".join))
def test_name_is_refused_exactly_if_it_is_so_below_a_directory(name: str) -> None:
    """Below another name, nothing is decided by the quick look."""
    assert refuse_name(name) == refuse_name(f"folder/{name}")


@pytest.mark.parametrize("name", ["", ".", "..", "a/..", "../a", "a//b", "/a", "a/", "\0", "a\0b", "\ud800", "n" * 256])
def test_name_that_leads_elsewhere_or_that_no_disk_takes_is_refused(name: str) -> None:
    assert refuse_name(name)


@pytest.mark.parametrize("name", ["a", "..a", "a/b", "ü", "\udcff", "n" * 255, "/".join(["n" * 255] * 16)])
def test_name_that_a_disk_takes_is_not_refused(name: str) -> None:
    assert len(name) < MAX_PATH_BYTES
    assert refuse_name(name) is None
