"""Findings with their verdicts, and campaigns that disagree."""

from __future__ import annotations

import pytest
from attrs import evolve

from perf.records.record import Record
from perf.reports.findings import (
    BETTER,
    NONE,
    ONE_RUN,
    WORSE,
    costs,
    disagreements,
    findings,
    knees,
    overviews,
    per_file,
    sentences,
)
from tests.perf.samples import HEADER, many_sample, record, sample


def named(name: str, times: dict[str, list[list[float]]]) -> Record:
    made = record(times)
    return evolve(made, header=evolve(made.header, campaign=name))


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ([[0.5], [0.51], [0.49]], BETTER),
        ([[2.0], [2.1], [1.9]], WORSE),
        ([[0.9], [1.1], [1.0]], NONE),
        ([[0.1]], ONE_RUN),
    ],
)
def test_finding_has_a_verdict_from_its_interval(ours: list[list[float]], verdict: str) -> None:
    (found,) = findings(record({"grid": ours, "tahoe": [[1.0], [1.0], [1.0]]}))
    assert found.verdict == verdict
    assert str(found).endswith(f"{verdict}.")


def test_sentence_is_made_from_the_numbers() -> None:
    (line,) = sentences(record({"grid": [[0.5], [0.5]], "tahoe": [[1.0], [1.0]]}))
    assert line == ("put 100 MB, 3-of-10, warm: grid has 2 times the speed of tahoe (95 %: 2 to 2, 2 runs): better.")


def test_overview_counts_the_rows_of_each_pair() -> None:
    slower = record({"grid": [[2.0], [2.1]], "tahoe": [[1.0], [1.0]]})
    faster = record({"grid": [[0.5], [0.5]], "tahoe": [[1.0], [1.0]]})
    assert overviews([*findings(slower), *findings(faster)]) == [
        "grid has 0.488 to 2 times the speed of tahoe (median 1.24): of 2 rows, 1 better, 1 worse."
    ]


def test_campaigns_disagree_if_their_intervals_do_not_meet() -> None:
    tahoe = [[1.0], [1.0], [1.0]]
    one = named("one", {"grid": [[0.5], [0.5], [0.5]], "tahoe": tahoe})
    same = named("same", {"grid": [[0.4], [0.5], [0.6]], "tahoe": tahoe})
    other = named("other", {"grid": [[0.9], [0.9], [0.9]], "tahoe": tahoe})
    assert disagreements([one, same]) == []
    (found,) = disagreements([one, other])
    assert "one says 2 [2, 2], other says 1.11" in str(found)


def test_campaign_of_one_run_disagrees_with_nobody() -> None:
    assert (
        disagreements([named("a", {"grid": [[1]], "tahoe": [[1]]}), named("b", {"grid": [[9]], "tahoe": [[1]]})]) == []
    )


def test_knee_of_several_degrees_names_how_many_to_take() -> None:
    seconds = {1: 8.0, 2: 4.1, 4: 2.0, 8: 2.0}
    samples = tuple(evolve(many_sample(16, 25 * 10**6, degree), seconds=took) for degree, took in seconds.items())
    ((key, knee),) = knees(Record(HEADER, samples)).items()
    assert key[0] == "grid"
    assert (knee.degree, knee.is_seen) == (4, True)
    assert any("take 4" in line for line in sentences(Record(HEADER, samples)))


def test_costs_of_a_file_and_of_a_byte_are_separated() -> None:
    samples = tuple(
        evolve(many_sample(count, size, 1), seconds=count * (0.01 + size * 1e-8))
        for count in (10, 1000)
        for size in (1000, 10**6)
    )
    ((_, cost),) = costs(Record(HEADER, samples)).items()
    assert cost.per_file_s == pytest.approx(0.01)
    assert cost.per_byte_s == pytest.approx(1e-8)


def test_others_that_were_not_idle_are_reported() -> None:
    still, loud = (Record(HEADER, (evolve(sample(), others_cpu_s=spent),)) for spent in (0.0, 0.3))
    assert "they stood still" in sentences(still)[-1]
    assert "NOT still" in sentences(loud)[-1]


def test_files_have_their_least_mean_and_greatest_seconds() -> None:
    made = record({"grid": [[1.0, 2.0], [6.0]]})
    assert [(system, *times) for system, _, *times in per_file(made)] == [("grid", 1.0, 3.0, 6.0)]
