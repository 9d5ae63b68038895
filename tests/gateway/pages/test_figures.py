"""Numbers as people read them."""

from __future__ import annotations

import pytest

from grid.gateway.pages.figures import duration_text, size_text, time_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (None, "–"),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (12_345, "12.3 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (10**13, "10.0 TB"),
        (2**63, "9.22 EB"),
        (10**30, "1000000000000 EB"),
    ],
)
def test_sizes_have_three_figures(size: int | None, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.00125, "1.2 ms"), (0.25, "250 ms"), (12.34, "12.3 s"), (61, "1 min 01 s"), (7260, "2 h 01 min")],
)
def test_durations_have_the_unit_that_fits(seconds: float | None, text: str) -> None:
    assert duration_text(seconds) == text


def test_times_that_no_calendar_has_are_not_shown() -> None:
    assert time_text(0) == "1970-01-01 00:00"
    assert [time_text(moment) for moment in (None, 1e300, float("nan"), float("inf"))] == ["–"] * 4
