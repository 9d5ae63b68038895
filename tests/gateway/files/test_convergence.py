"""Keys that are made while the bytes arrive."""

from __future__ import annotations

import pytest

from grid.gateway.files.convergence import ArrivingKey
from grid.immutable.put import Encoding
from grid.immutable.share.encode import convergent_hasher
from grid.immutable.share.geometry import Geometry

ENCODING = Encoding(k=3, n=10, happy=7, max_segment_size=1000)
SECRET = b"secret"


def key_of(data: bytes) -> bytes:
    """The key by the definition."""
    hasher = convergent_hasher(SECRET, Geometry.of_file(len(data), 3, 10, 1000))
    hasher.update(data)
    return hasher.digest(16)


def arrive(data: bytes, expected: int | None) -> bytes | None:
    arriving = ArrivingKey(SECRET, ENCODING, expected)
    for start in range(0, len(data), 77):
        arriving.update(data[start : start + 77])
    return arriving.finish()


@pytest.mark.parametrize("size", [56, 500, 999, 1000, 1001, 5000])
def test_key_when_the_size_is_known_then_is_that_of_the_file(size: int) -> None:
    assert arrive(bytes(size), size) == key_of(bytes(size))


@pytest.mark.parametrize("size", [1000, 1001, 5000])
def test_key_when_a_long_file_comes_without_its_size_then_is_that_of_the_file(size: int) -> None:
    assert arrive(bytes(size), None) == key_of(bytes(size))


@pytest.mark.parametrize(("size", "expected"), [(0, None), (55, None), (500, None), (0, 0), (55, 55), (500, 800)])
def test_key_when_the_file_is_not_as_expected_then_there_is_none(size: int, expected: int | None) -> None:
    assert arrive(bytes(size), expected) is None


def test_key_when_nearly_all_came_then_is_right_or_none() -> None:
    assert arrive(bytes(997), 998) in (None, key_of(bytes(997)))
