"""Verdicts on targets, from samples with known answers."""

from __future__ import annotations

import pytest
from attrs import evolve

from perf.records.record import Record, Sample
from perf.reports.target_rows import GET, TARGETS, target_tables
from perf.reports.targets import Metric, Target, Wanted, judge
from tests.perf.samples import HEADER, sample, tree_sample

GET_ROW = Target(table="t", what="get", wanted=GET, bar=3, stretch=4, against="tahoe's best")


def record(*samples: Sample) -> Record:
    """A record of these, by whatever systems they are of."""
    systems = tuple(dict.fromkeys(one.system for one in samples))
    return Record(evolve(HEADER, systems=systems), samples)


def gets(system: str, *seconds: float) -> list[Sample]:
    """One get in each run."""
    return [sample(system, run=run, seconds=value, scenario="get") for run, value in enumerate(seconds)]


@pytest.mark.parametrize(
    ("mine", "verdict", "met"),
    [
        ((1.0, 1.0, 1.0), "met, and the stretch", True),
        ((1.4, 1.4, 1.4), "met", True),
        ((1.4, 1.4, 2.5), "met, the interval not wholly", True),
        ((2.5, 2.5, 2.5), "missed by 33%", False),
    ],
)
def test_row_is_judged_by_the_median_of_the_ratios_of_runs(mine: tuple[float, ...], verdict: str, met: bool) -> None:
    outcome = judge(GET_ROW, [record(*gets("grid@http", *mine), *gets("tahoe@foolscap", 5.0, 5.0, 5.0))])
    assert (outcome.verdict(), outcome.met) == (verdict, met)


@pytest.mark.parametrize("factor", [{"site": "loopback, on tmpfs"}, {"cache": "cold"}, {"mode": "serial"}, {"k": 60}])
def test_row_ignores_the_same_size_elsewhere_and_otherwise(factor: dict[str, str | int]) -> None:
    other = [
        evolve(one, factors={**one.factors, **factor})
        for one in (*gets("grid@http", 1.0, 1.0, 1.0), *gets("tahoe@foolscap", 9.0, 9.0, 9.0))
    ]
    own = [*gets("grid@http", 1.0), *gets("tahoe@foolscap", 2.0)]
    for records in ([record(*own), record(*other)], [record(*other), record(*own)], [record(*own, *other)]):
        assert judge(GET_ROW, records).findings[0].estimate.median == 2.0
    assert judge(GET_ROW, [record(*other)]).verdict() == "not measured"


def test_row_of_two_runs_says_so_and_shows_their_range() -> None:
    mine = record(*gets("grid@http", 1.0, 2.0), *gets("tahoe@foolscap", 5.0, 5.0))
    assert judge(evolve(GET_ROW, stretch=None), [mine]).verdict() == "met, not by every run (2 runs)"
    assert "http 3.75 (2.5 to 5), 2 runs" in target_tables([mine], all_rows=False)


@pytest.mark.parametrize(
    ("mine", "verdict"),
    [(1.0, "met, and the stretch (one run)"), (1.4, "met (one run)"), (2.5, "missed by 33% (one run)")],
)
def test_row_of_one_run_says_so(mine: float, verdict: str) -> None:
    outcome = judge(GET_ROW, [record(*gets("grid@http", mine), *gets("tahoe@foolscap", 5.0))])
    assert outcome.verdict() == verdict


def test_row_against_the_best_takes_the_faster_rival_and_the_better_transport() -> None:
    samples = [
        *gets("grid@foolscap", 2.0, 2.0),
        *gets("grid@http", 1.0, 1.0),
        *gets("tahoe@http", 9.0, 9.0),
        *gets("tahoe@foolscap", 6.0, 6.0),
        *gets("grid@foolscap+zfec", 0.1, 0.1),
    ]
    outcome = judge(GET_ROW, [record(*samples)])
    assert [(found.system, found.against, found.estimate.median) for found in outcome.findings] == [
        ("grid@http", "tahoe@foolscap", 6.0),
        ("grid@foolscap", "tahoe@foolscap", 3.0),
    ]


def test_rows_ignore_what_commands_and_gateways_took() -> None:
    samples = [
        *gets("grid@http", 1.0, 1.0),
        *gets("grid@http/transfer-pack", 0.1, 0.1),
        *gets("tahoe@foolscap", 6.0, 6.0),
        *gets("tahoe@foolscap/cli", 5.0, 5.0),
        *gets("rclone@versitygw+crypt", 1.0, 1.0),
    ]
    outcome = judge(GET_ROW, [record(*samples)])
    assert [(found.system, found.against, found.estimate.median) for found in outcome.findings] == [
        ("grid@http", "tahoe@foolscap", 6.0)
    ]


def test_row_without_measurements_is_not_met() -> None:
    for nothing in ([], [record(*gets("tahoe", 1.0))], [record(*gets("grid", 1.0))]):
        outcome = judge(GET_ROW, nothing)
        assert (outcome.verdict(), outcome.met) == ("not measured", None)


def test_row_about_ourselves_compares_two_works_of_a_system() -> None:
    wide = {"k": 60, "n": 120, "size": 10**8}
    samples = gets("grid", 1.0, 1.0)
    samples += [evolve(one, factors=wide) for one in gets("grid", 2.0, 2.0)]
    row = Target(table="t", what="w", wanted=Wanted(scenario="get", k=60), basis=GET, bar=0.8, against="ours")
    assert judge(row, [record(*samples)]).findings[0].estimate.median == 0.5
    assert judge(row, [record(*samples)]).met is False


def test_row_about_a_client_takes_its_samples_alone() -> None:
    samples = gets("grid", 1.0, 1.0)
    samples += [evolve(one, client="gateway") for one in gets("grid", 1.25, 1.25)]
    (row,) = [target for target in TARGETS if target.what == "CHK get, 100 MB / by the library"]
    assert judge(row, [record(*samples)]).findings[0].estimate.median == pytest.approx(0.8)
    assert judge(row, [record(*gets("grid", 1.0))]).verdict() == "not measured"


def test_row_about_children_compares_one_change_with_many() -> None:
    samples = [
        *(evolve(tree_sample("add-batch", 100), system="grid", seconds=0.1, run=run) for run in range(2)),
        *(evolve(tree_sample("add-batch", 100), system="tahoe", seconds=0.2, run=run) for run in range(2)),
        *(evolve(tree_sample("add-each", 100), system="tahoe", seconds=6.0, run=run) for run in range(2)),
    ]
    (row,) = [target for target in TARGETS if target.what.startswith("100 children")]
    assert judge(row, [record(*samples)]).findings[0].estimate.median == pytest.approx(60)


def test_row_of_processor_time_counts_client_and_servers_for_each_byte() -> None:
    mine = [evolve(one, client_cpu_s=0.2, server_cpu_s=0.1) for one in gets("grid", 1.0)]
    theirs = [evolve(one, client_cpu_s=0.6, server_cpu_s=0.4) for one in gets("tahoe", 1.0)]
    row = evolve(GET_ROW, metric="cpu", bar=0.35, stretch=None)
    outcome = judge(row, [record(*mine, *theirs)])
    assert outcome.findings[0].estimate.median == pytest.approx(0.3)
    assert outcome.verdict() == "met (one run)"


@pytest.mark.parametrize(
    ("metric", "value"), [("above idle", 30.0), ("client peak", 80.0), ("server peak", 90.0), ("idle cpu", 75.0)]
)
def test_row_that_bounds_takes_the_worst_of_all_runs(metric: Metric, value: float) -> None:
    low, high = gets("grid", 0.5, 0.5)
    high = evolve(high, server_peak_rss=90 * 2**20)
    row = evolve(GET_ROW, metric=metric, against=None, stretch=None, bar=100.0)
    outcome = judge(row, [record(low, high)])
    assert outcome.findings[0].estimate.median == pytest.approx(value)
    assert outcome.met is True
    assert judge(evolve(row, bar=value / 2), [record(low, high)]).verdict() == "missed by 100% (2 runs)"


def test_ratio_is_judged_by_the_record_with_most_samples_and_a_bound_by_the_worst() -> None:
    large = record(*gets("grid", 1.0, 1.0, 1.0), *gets("tahoe", 4.0, 4.0, 4.0))
    small = record(*gets("grid", 1.0), *gets("tahoe", 9.0))
    for records in ([large, small], [small, large]):
        assert judge(GET_ROW, records).findings[0].estimate.median == 4.0
    row = evolve(GET_ROW, metric="server peak", against=None, bar=100.0, stretch=None)
    heavy = record(*(evolve(one, server_peak_rss=200 * 2**20) for one in gets("grid@http", 1.0)))
    for records in ([large, heavy], [heavy, large]):
        outcome = judge(row, records)
        assert [(found.system, found.estimate.median) for found in outcome.findings] == [
            ("grid@http", 200.0),
            ("grid@foolscap", 60.0),
        ]
        assert outcome.met is False


def test_tables_have_every_row_or_only_what_was_measured() -> None:
    found = record(*gets("grid", 1.0, 1.0), *gets("tahoe", 3.5, 3.5))
    text = target_tables([found], all_rows=True)
    assert all(f"| {target.what} |" in text for target in TARGETS)
    assert "| 3x | 4x | foolscap 3.5 (3.5 to 3.5), 2 runs | put-get | met (2 runs) |" in text
    assert "not measured |" in text
    short = target_tables([found], all_rows=False)
    assert "not measured |" not in short
    assert "| CHK get, 100 MB | tahoe@foolscap |" in short
    assert "Mutable files" not in short


def test_record_of_what_is_no_system_of_the_catalogue_is_judged_by_no_row() -> None:
    text = target_tables([record(*gets("processor without AES instructions", 1.0, 1.1))], all_rows=True)
    assert "AES" not in text
