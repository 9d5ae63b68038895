"""The axes of plots; drawing itself is matplotlib's job."""

from __future__ import annotations

import pytest
from attrs import evolve

from perf.records.beside import Timeline
from perf.records.record import Record, Sample
from perf.records.work import works_of
from perf.reports.plot import axis_of, bars_of, colors_of, drawn_works, has_bars, panels_of, pressures_of, spans_of
from perf.sampling.statistics import estimate_runs
from tests.perf.samples import HEADER, many_sample, range_sample, sample


def encoded(needed: int, total: int) -> Sample:
    """A put at another encoding."""
    return evolve(sample(), factors={"k": needed, "n": total, "size": 10**8})


def test_panels_keep_units_and_scenarios_apart() -> None:
    samples = [sample(), sample(scenario="get"), range_sample(1), range_sample(65536), many_sample(200, 1024, 16)]
    panels = panels_of(works_of(samples))
    assert {title: len(works) for title, works in panels.items()} == {
        "get, warm, MB/s": 1,
        "put, warm, MB/s": 1,
        "put, warm, 200 files, files/s": 1,
        "range, warm, ms": 2,
    }


def test_title_when_work_has_no_client_has_no_gap() -> None:
    alone = evolve(sample(), client="")
    assert list(panels_of(works_of([alone]))) == ["put, MB/s"]


def test_works_that_differ_in_their_warm_up_share_a_panel_of_bars() -> None:
    warmed = [
        evolve(many_sample(200, 1024, 16), factors={"size": 1024, "warm": warm}) for warm in ("never", "no", "yes")
    ]
    works = works_of(warmed)
    (mine,) = panels_of(works).values()
    assert has_bars(mine)
    known = {
        "grid": {works[0]: estimate_runs({0: [1.0]})},
        "boto3": {work: estimate_runs({0: [2.0]}) for work in works[1:]},
    }
    assert [(system, name, found.median) for system, name, found in bars_of(mine, known)] == [
        ("grid", "grid", 1.0),
        ("boto3", "boto3, without a warm-up", 2.0),
        ("boto3", "boto3, after a warm-up", 2.0),
    ]


def test_works_on_an_axis_are_lines() -> None:
    assert not has_bars(works_of([range_sample(1), range_sample(65536)]))
    assert has_bars(works_of([sample()]))


@pytest.mark.parametrize("count", [1, 10, 11, 20])
def test_no_two_systems_have_one_color(count: int) -> None:
    assert len(set(colors_of(count))) == count


def test_panels_differ_in_the_factor_of_their_axis_alone() -> None:
    sizes = [
        evolve(encoded(k, 2 * k), factors={"k": k, "n": 2 * k, "size": size}, size=size)
        for k in (3, 30, 60)
        for size in (10**6, 10**8)
    ]
    panels = panels_of(works_of(sizes))
    assert {title: [dict(work.factors)["k"] for work in works] for title, works in panels.items()} == {
        "put, warm, MB/s, 1 MB": [3, 30, 60],
        "put, warm, MB/s, 100 MB": [3, 30, 60],
    }


def test_works_of_systems_that_the_header_does_not_name_have_no_panel() -> None:
    trial = evolve(sample("scp+strict"), scenario="put to a server as it comes")
    made = Record(evolve(HEADER, systems=("grid",)), (sample(), trial))
    assert [work.scenario for work in drawn_works(made)] == ["put"]


def test_axis_is_the_factor_that_varies() -> None:
    assert axis_of(works_of([range_sample(1), range_sample(65536)]))[0] == "length"
    assert axis_of(works_of([encoded(3, 10), encoded(60, 120)]))[0] == "k"
    assert axis_of(works_of([sample()]))[0] == "size"


def test_pressure_over_time_is_a_part_of_each_interval() -> None:
    series = {"at_ms": [0, 100, 200, 300], "waited_ms": {"io": [5, 55, 55, 300], "cpu": [0, 0, 10, 10]}}
    found = pressures_of(evolve(sample(), series=series))
    assert found["io"][0] == [0.0, 0.1, 0.2, 0.3]
    assert found["io"][1] == pytest.approx([0.0, 50.0, 0.0, 100.0])
    assert found["cpu"][1] == pytest.approx([0.0, 0.0, 10.0, 0.0])
    assert pressures_of(sample()) == {}


def test_spans_join_each_request_with_its_answer_and_leave_none_out() -> None:
    events = [
        [0.0, "phase", "placing", -1, [], 0, -1],
        [1.0, "send", "Read", 0, [1], 9, 0],
        [1.5, "send", "Close", 0, [1], 9, 0],
        [2.0, "send", "Read", 1, [2], 9, 1],
        [3.0, "answer", "Close", 0, [1], 9, 0],
        [4.0, "fail", "PeerGoneError", 1, [2], 9, 1],
        [5.0, "progress", "", -1, [], 9, -1],
    ]
    spans, marks = spans_of(Timeline(run=0, order=0, median=1.0, left_out=0, events=events))
    assert spans == [(0, 1.5, 3.0, "Close", "answer"), (1, 2.0, 4.0, "Read", "fail"), (0, 1.0, 5.0, "Read", "open")]
    assert marks == [(0.0, "phase placing")]
