"""Findings with their verdicts, and campaigns that disagree."""

from __future__ import annotations

import pytest
from attrs import evolve

from perf.records.record import Record, Sample
from perf.reports.findings import (
    BETTER,
    FEW_RUNS,
    NONE,
    ONE_RUN,
    WORSE,
    disagreements,
    findings,
    overviews,
    per_file,
    sentences,
)
from perf.reports.report import report
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
        ([[0.1], [0.1]], FEW_RUNS),
        ([[0.3], [0.6], [0.9]], NONE),
    ],
)
def test_finding_has_a_verdict_from_its_interval(ours: list[list[float]], verdict: str) -> None:
    (found,) = findings(record({"grid": ours, "tahoe": [[1.0], [1.0], [1.0]]}))
    assert found.verdict == verdict
    assert str(found).endswith(f"{verdict}.")


def test_sentence_is_made_from_the_numbers_and_says_what_they_are() -> None:
    (few,) = sentences(record({"grid": [[0.5], [0.4]], "tahoe": [[1.0], [1.0]]}))
    assert few == (
        "put 100 MB, 3-of-10, warm: grid has 2.25 times the speed of tahoe (range of 2 runs: 2 to 2.5): too few runs for a "
        "verdict."
    )
    (enough,) = sentences(record({"grid": [[0.5], [0.4], [0.45]], "tahoe": [[1.0]] * 3}))
    assert enough.endswith("2.22 times the speed of tahoe (95 %: 1.69 to 2.94, 3 runs): better.")


def test_verdicts_are_for_all_rows_of_two_systems_together() -> None:
    """One row alone is clear enough; with 19 others, one so clear is likely by chance."""
    one = record({"grid": [[0.9], [0.91], [0.93]], "tahoe": [[1.0]] * 3})
    many = [
        evolve(made, size=made.size + more, factors={**made.factors, "size": made.size + more})
        for more in range(20)
        for made in one.samples
    ]
    assert findings(one)[0].verdict == BETTER
    found = findings(evolve(one, samples=tuple(many)))
    assert {finding.verdict for finding in found} == {NONE}
    assert str(found[0]).endswith("3 runs): no difference shown among 20 rows.")


def test_overview_counts_the_rows_of_each_pair() -> None:
    slower = record({"grid": [[2.0], [2.1], [2.05]], "tahoe": [[1.0], [1.0], [1.0]]})
    faster = record({"grid": [[0.5], [0.5], [0.5]], "tahoe": [[1.0], [1.0], [1.0]]})
    short = record({"grid": [[1.0], [1.0]], "tahoe": [[1.0], [1.0]]})
    assert overviews([*findings(slower), *findings(faster), *findings(short)]) == [
        "grid has 0.488 to 2 times the speed of tahoe (median 1): of 3 rows, 1 better, 1 worse, 1 from too few runs for a verdict."
    ]


def test_first_grid_is_compared_with_the_others_unless_another_is_named() -> None:
    made = record({"rclone@grid": [[1.0]], "tahoe": [[2.0]], "grid@http/cli": [[0.5]], "grid@http": [[0.25]]})
    assert [(one.subject, one.other) for one in findings(made)] == [
        ("grid@http/cli", "rclone@grid"),
        ("grid@http/cli", "tahoe"),
        ("grid@http/cli", "grid@http"),
    ]
    assert "| grid@http/cli / tahoe [95 %]" in report(made)
    assert {one.subject for one in findings(made, "tahoe")} == {"tahoe"}
    assert {one.subject for one in findings(record({"cp": [[1.0]], "scp": [[2.0]]}))} == {"cp"}


def test_campaigns_with_grid_in_another_place_are_compared() -> None:
    times = {"grid": [[0.5]] * 3, "tahoe": [[1.0]] * 3}
    slow = {"tahoe": [[1.0]] * 3, "grid": [[0.9]] * 3}
    (found,) = disagreements([named("one", times), named("other", slow)])
    assert "grid against tahoe: one says 2 [2, 2], other says 1.11 [1.11, 1.11]" in str(found)


def test_campaigns_disagree_if_their_intervals_do_not_meet() -> None:
    tahoe = [[1.0], [1.0], [1.0]]
    one = named("one", {"grid": [[0.5], [0.5], [0.5]], "tahoe": tahoe})
    same = named("same", {"grid": [[0.4], [0.5], [0.6]], "tahoe": tahoe})
    other = named("other", {"grid": [[0.9], [0.9], [0.9]], "tahoe": tahoe})
    assert disagreements([one, same]) == []
    (found,) = disagreements([one, other])
    assert "one says 2 [2, 2], other says 1.11 [1.11, 1.11] (95 %)." in str(found)
    assert "for 3 comparisons together" in str(disagreements([one, same, other])[0])


@pytest.mark.parametrize("runs", [1, 2])
def test_campaign_of_few_runs_disagrees_with_nobody(runs: int) -> None:
    tahoe = [[1.0]] * runs
    few = [named(name, {"grid": [[seconds]] * runs, "tahoe": tahoe}) for name, seconds in (("a", 1.0), ("b", 9.0))]
    assert disagreements(few) == []


def staccato(system: str, *waits: float) -> Sample:
    """A file each second, whose schedule ends with the last of ten."""
    files = tuple((100, float(at), at + 0.01, at + wait, "") for at, wait in enumerate(waits))
    return evolve(
        sample(system, seconds=9.0 + waits[-1]), factors={"mode": "staccato", "count": 10}, count=10, files=files
    )


def test_open_loops_are_compared_by_what_each_file_waited() -> None:
    """Their totals are those of the schedule, 9.1 and 9.4 seconds."""
    made = Record(HEADER, (staccato("grid", *[0.1] * 10), staccato("tahoe", *[0.4] * 10)))
    (found,) = findings(made)
    assert found.ratio.median == pytest.approx(4.0)
    assert any(line == "put, grid, ms of a file: staccato 100 (100 to 100)." for line in sentences(made))
    assert "| 100 ms of a file, 1 | 400 ms of a file, 1 | 4.00, 1 run |" in report(made)


def test_open_loop_without_times_of_files_is_not_compared() -> None:
    bare = [evolve(staccato(system, *[0.1] * 10), files=()) for system in ("grid", "tahoe")]
    assert findings(Record(HEADER, tuple(bare))) == []


def test_others_that_were_not_idle_are_reported() -> None:
    still, loud = (Record(HEADER, (evolve(sample(), others_cpu_s=spent),)) for spent in (0.0, 0.3))
    assert "they stood still" in sentences(still)[-1]
    assert "NOT still" in sentences(loud)[-1]


def test_files_have_their_least_mean_and_greatest_seconds() -> None:
    made = record({"grid": [[1.0, 2.0], [6.0]]})
    assert [(system, *times) for system, _, *times in per_file(made)] == [("grid", 1.0, 3.0, 6.0)]


def test_files_of_which_only_the_total_is_known_have_no_seconds_of_their_own() -> None:
    at_once = evolve(many_sample(4, 1000, 4), seconds=2.0)
    files = tuple((1000, 0.0, 0.0, ended, "") for ended in (1.0, 1.5, 1.5, 2.0))
    assert per_file(Record(HEADER, (at_once,))) == []
    ((_, _, *times),) = per_file(Record(HEADER, (evolve(at_once, files=files),)))
    assert times == [1.0, 1.5, 2.0]
