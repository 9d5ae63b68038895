"""Sizes of written files, and bounds on sizes that are read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError
from grid.mutable.share.geometry import MDMF_VERSION, SDMF_VERSION, Geometry


@pytest.mark.parametrize(
    ("version", "size", "k", "expected"),
    [
        (SDMF_VERSION, 0, 3, (0, 0, 0, 32)),
        (SDMF_VERSION, 1, 3, (3, 1, 1, 32)),
        (SDMF_VERSION, 10, 3, (12, 1, 4, 32)),
        (MDMF_VERSION, 0, 3, (131073, 0, 0, 32)),
        (MDMF_VERSION, 1, 3, (131073, 1, 17, 32)),
        (MDMF_VERSION, 131073, 3, (131073, 1, 43707, 32)),
        (MDMF_VERSION, 131074, 3, (131073, 2, 43707 + 17, 96)),
        (MDMF_VERSION, 5 * 131072, 1, (131072, 5, 5 * 131088, 480)),
    ],
)
def test_geometry_when_of_a_file_then_has_the_sizes_of_the_format(
    version: int, size: int, k: int, expected: tuple[int, ...]
) -> None:
    geometry = Geometry.of_file(version, size, k, 10)
    assert (geometry.segment_size, geometry.segment_count, geometry.data_size, geometry.tree_size) == expected


@given(st.integers(0, 1), st.integers(0, 10**7), st.integers(1, 255), st.integers(0, 254))
def test_geometry_when_of_any_file_then_its_parts_add_up(version: int, size: int, k: int, more: int) -> None:
    geometry = Geometry.of_file(version, size, k, min(255, k + more))
    count = geometry.segment_count
    assert sum(geometry.segment_length(segment) for segment in range(count)) == size
    stored = sum(geometry.salt_size + geometry.block_length(segment) for segment in range(count))
    assert geometry.data_size == stored
    for segment in (0, count - 1) if count else ():
        assert geometry.block_length(segment) * k >= geometry.segment_length(segment)
        assert geometry.run_sizes(segment, 1) == (
            geometry.salt_size + geometry.block_length(segment),
            geometry.segment_length(segment),
        )


@pytest.mark.parametrize(
    "bad",
    [
        {"k": 0},
        {"k": 11},
        {"n": 256},
        {"k": 0, "n": 0},
        {"segment_size": 0},
        {"segment_size": 131072},
        {"segment_size": 2**40 * 3},
        {"size": 2**64 - 1},
        {"version": 2},
        {"version": 0},
        {"segment_size": 3, "size": 2**40},
    ],
)
def test_geometry_when_its_numbers_are_impossible_then_refuses(bad: dict[str, int]) -> None:
    good = {"version": 1, "size": 10**6, "k": 3, "n": 10, "segment_size": 131073}
    Geometry(**good)
    with pytest.raises(FormatError):
        Geometry(**good | bad)


def test_geometry_when_asked_for_more_shares_than_fit_a_byte_then_refuses() -> None:
    assert Geometry.of_file(1, 5, 255, 255).n == 255
    for k, n in ((3, 256), (0, 3), (4, 3)):
        with pytest.raises(FormatError):
            Geometry.of_file(1, 5, k, n)
