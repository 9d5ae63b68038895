"""Times in S3's format."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.s3.times import iso_time


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "1970-01-01T00:00:00.000Z"),
        (-1.0, "1970-01-01T00:00:00.000Z"),
        (59.9999999, "1970-01-01T00:01:00.000Z"),
        (1_700_000_000.25, "2023-11-14T22:13:20.250Z"),
        (1e300, "9999-12-31T23:59:59.000Z"),
    ],
)
def test_a_time_has_milliseconds_and_lies_in_the_calendar(seconds: float, said: str) -> None:
    assert iso_time(seconds) == said


@given(seconds=st.integers(0, 2**41).map(lambda milliseconds: milliseconds / 1000))
def test_a_time_is_that_of_the_library(seconds: float) -> None:
    moment = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    assert iso_time(seconds) == moment.replace("+00:00", "Z")
