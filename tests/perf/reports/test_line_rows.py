"""Verdicts on the rows of long lines and of faults, from samples with known answers."""

from __future__ import annotations

import pytest
from attrs import evolve

from perf.records.record import Factor, Record, Sample
from perf.reports.target_rows import TARGETS, counts, target_tables
from perf.reports.targets import Outcome, judge
from tests.perf.samples import HEADER, sample


def record(*samples: Sample) -> Record:
    systems = tuple(dict.fromkeys(one.system for one in samples))
    return Record(evolve(HEADER, systems=systems), samples)


def far(system: str, seconds: float, *, scenario: str = "put", size: int = 10**6, **more: Factor) -> list[Sample]:
    """Three runs over a line of 100 ms, unless more says otherwise."""
    factors = {"k": 3, "n": 10, "size": size, "site": "wan100", **more}
    one = evolve(sample(system, seconds=seconds, scenario=scenario), factors=factors, size=size)
    return [evolve(one, run=run) for run in range(3)]


def faulty(system: str, operation: str, fault: str, seconds: float) -> list[Sample]:
    made = evolve(sample(system, seconds=seconds, scenario=operation), client="", factors={"fault": fault}, size=0)
    return [evolve(made, run=run) for run in range(3)]


def outcome(what: str, *samples: Sample) -> Outcome:
    (row,) = [target for target in TARGETS if target.what == what]
    return judge(row, [record(*samples)])


def test_row_of_a_line_compares_the_systems_on_that_line_alone() -> None:
    near = far("tahoe@foolscap", 0.1, site="wan30")
    found = outcome("CHK put, 1 MB, 100 ms", *far("grid@http", 0.3), *far("tahoe@foolscap", 0.42), *near)
    assert found.findings[0].estimate.median == pytest.approx(1.4)
    assert found.verdict() == "missed by 7%"
    found = outcome("CHK get, 1 MB, 100 ms", *far("grid@http", 0.3, scenario="get"), *far("tahoe", 0.3, scenario="get"))
    assert found.verdict() == "met"


@pytest.mark.parametrize(("seconds", "verdict"), [(0.74, "met"), (0.814, "missed by 10%")])
def test_row_in_seconds_takes_the_quicker_transport(seconds: float, verdict: str) -> None:
    what = "CHK put, 10 MB, 100 ms: the line's 0.27 s, 4 round trips and 10 %"
    put = 10**7
    found = outcome(what, *far("grid@http", seconds, size=put), *far("grid@foolscap", 2.0, size=put))
    assert (found.findings[0].system, found.verdict()) == ("grid@http", verdict)
    assert outcome(what, *far("tahoe@foolscap", 0.1, size=put)).verdict() == "not measured"


def test_row_about_the_line_is_the_part_of_its_speed() -> None:
    what = "CHK put, 50 MB, 100 ms: part of the client's line"
    quick, slow = (far(name, seconds, size=5 * 10**7) for name, seconds in (("grid@http", 1.4), ("grid@foolscap", 2.0)))
    found = outcome(what, *quick, *slow)
    assert found.findings[0].estimate.median == pytest.approx(1.3333 / 1.4, rel=1e-3)
    assert found.met is True
    assert outcome(what, *slow).met is False
    assert outcome("MDMF put, 50 MB, 100 ms: part of the client's line", *quick).met is None


@pytest.mark.parametrize(("seconds", "verdict"), [(0.7, "met"), (0.8, "missed by 33%")])
def test_row_about_servers_that_are_gone_counts_the_added_seconds(seconds: float, verdict: str) -> None:
    found = outcome(
        "get of 8 MB from nothing running, seven servers gone",
        *faulty("grid@http/cli", "get 8 MB", "none", 0.4),
        *faulty("grid@http/cli", "get 8 MB", "7 gone", seconds),
        *faulty("grid@http/gateway", "get 8 MB", "none", 0.1),
        *faulty("grid@http/gateway", "get 8 MB", "7 gone", 9.0),
    )
    assert found.verdict() == verdict


@pytest.mark.parametrize("label", ["silent", "1 silent", "slow", "1 slow"])
@pytest.mark.parametrize(("seconds", "verdict"), [(0.15, "met"), (0.3, "missed by 100%")])
def test_row_about_a_bad_server_is_the_ratio_of_times(label: str, seconds: float, verdict: str) -> None:
    word = "silent" if "silent" in label else "that sends at 1 %"
    found = outcome(
        f"put 8 MB, gateway, one server {word}",
        *faulty("grid@http/gateway", "put 8 MB", "none", 0.1),
        *faulty("grid@http/gateway", "put 8 MB", label, seconds),
        *faulty("grid@http/gateway", "put 8 MB", "3 silent", 9.0),
        *faulty("grid@http/gateway", "put 8 MB", "1 lying", 9.0),
    )
    assert found.verdict() == verdict


def test_faults_that_were_not_measured_are_judged_by_no_row() -> None:
    samples = [
        one
        for fault, seconds in (("none", 0.1), ("1 lying", 0.2), ("1 gone", 0.2))
        for one in faulty("grid@http/gateway", "get 8 MB", fault, seconds)
    ]
    assert "Faults" not in target_tables([record(*samples)], all_rows=False)


def test_count_says_how_many_rows_rest_on_few_runs() -> None:
    once = outcome(
        "CHK get, 1 MB, 30 ms",
        *far("grid", 1.0, scenario="get", site="wan30")[:1],
        *far("tahoe", 2.0, scenario="get", site="wan30"),
    )
    twice = outcome("CHK put, 1 MB, 100 ms", *far("grid@http", 0.3), *far("tahoe@foolscap", 0.9))
    missed = outcome("CHK put, 1 MB, 100 ms", *far("grid@http", 0.3), *far("tahoe@foolscap", 0.3))
    unknown = outcome("CHK put, 1 MB, 100 ms", *far("grid@http", 0.3))
    assert (
        counts([once, twice, missed, unknown])
        == "2 of 3 measured rows are met, 1 of them by one or two runs. Not measured: 1."
    )


def test_fault_that_costs_one_transport_much_is_judged_by_that_one() -> None:
    samples = [
        one
        for system, seconds in (("grid@http/gateway", 0.75), ("grid@foolscap/gateway", 0.1))
        for fault, each in (("none", 0.1), ("1 silent", seconds))
        for one in faulty(system, "put 8 MB", fault, each)
    ]
    found = outcome("put 8 MB, gateway, one server silent", *samples)
    assert (found.met, found.findings[0].system) == (False, "grid@http")
