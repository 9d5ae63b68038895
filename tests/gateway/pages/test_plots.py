"""Plots over time: their points are what the samples say, and they say it in words too."""

from __future__ import annotations

import re

import pytest

from grid.gateway.history.sample import Sample
from grid.gateway.pages.plots import draw_plots, parse_span, trace
from grid.gateway.pages.statistics import render_statistics
from tests.gateway.pages.hostile import require_harmless


def growing(seconds: int, rate: int) -> list[Sample]:
    """A sample every 30 seconds, while this many bytes are stored each second."""
    return [Sample(at=float(at), stored=rate * at, connected=5) for at in range(0, seconds + 1, 30)]


def test_points_are_the_growth_per_second_and_missing_before_the_first_sample() -> None:
    points = trace(growing(600, 1000), lambda sample: sample.stored, 3600, 60, is_rate=True)
    assert points[:49] == [None] * 49
    assert points[50:] == [pytest.approx(1000)] * 10


def test_points_of_a_level_are_the_last_value_before_them() -> None:
    samples = [Sample(at=0.0, connected=5), Sample(at=100.0, connected=3), Sample(at=120.0, connected=4)]
    assert trace(samples, lambda sample: sample.connected, 120, 4, is_rate=False) == [5, 5, 5, 4]


def test_counter_that_began_again_makes_no_negative_rate() -> None:
    samples = [Sample(at=0.0, stored=500), Sample(at=60.0, stored=20)]
    assert trace(samples, lambda sample: sample.stored, 60, 1, is_rate=True) == [0.0]


def test_sample_of_now_alone_makes_no_rate_and_all_plots_are_drawn_without_values() -> None:
    assert trace([Sample(at=5.0)], lambda sample: sample.stored, 3600, 60, is_rate=True) == [None] * 60
    document = require_harmless(draw_plots([Sample(at=5.0, connected=2)], "hour"))
    labels = [each["aria-label"] or "" for each in document.all("svg")]
    assert labels[0] == "Stored in the last hour: no values yet"
    assert labels[-1] == "Connected servers in the last hour: peak 2, now 2"


@pytest.mark.parametrize("span", ["hour", "day"])
def test_plots_stay_inside_their_frames_and_say_their_highest_and_last_values(span: str) -> None:
    samples = [*growing(7200, 1_234_567), Sample(at=7230.0, stored=1_234_567 * 7200, connected=5)]
    html = draw_plots(samples, parse_span(span))
    document = require_harmless(html)

    assert (document.all("svg")[0]["aria-label"] or "").startswith(f"Stored in the last {span}: peak 1.23 MB/s, now ")
    lines = [each["points"] or "" for each in (*document.all("polyline"), *document.all("polygon"))]
    numbers = [tuple(map(float, pair.split(","))) for line in lines for pair in line.split()]
    assert len(numbers) > 100 and all(0 <= x <= 340 and 0 <= y <= 120 for x, y in numbers)
    assert len(re.findall(r'aria-current="true"', html)) == 1


def test_large_numbers_have_all_their_digits_and_no_exponent() -> None:
    samples = [Sample(at=float(at), operations=20 * at, connected=1234) for at in range(0, 3601, 30)]
    html = draw_plots(samples, "hour")
    assert "peak 1,200/min" in html and "peak 1,234, now 1,234" in html
    assert not re.search(r"[0-9]e[+-]?[0-9]", html)


def test_page_of_statistics_has_plots_once_there_are_samples() -> None:
    assert "Over time" not in render_statistics({}, {})
    assert "Over time" in render_statistics({}, {}, samples=growing(60, 1), span="day")
