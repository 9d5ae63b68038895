"""Costs, knees and jobs that records fit."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attrs import evolve

from perf.records.record import Factor, Record, Sample
from perf.reports.findings import sentences
from perf.reports.fitted import WORST_FIT, costs, knees, recommended_jobs, sentences_of_fits
from tests.perf.samples import HEADER, many_sample


def by_degree(seconds: dict[int, float], *, run: int = 0, system: str = "grid", scenario: str = "put") -> list[Sample]:
    """The same 400 MB with several numbers of files at a time."""
    return [
        evolve(many_sample(16, 25 * 10**6, degree), seconds=took, run=run, system=system, scenario=scenario)
        for degree, took in seconds.items()
    ]


SEEN = {1: 8.0, 2: 4.1, 4: 2.0, 8: 2.0}
GROWS = {1: 8.0, 2: 4.0, 4: 2.0, 8: 1.0}


def test_knee_of_several_degrees_names_how_many_to_take() -> None:
    made = Record(HEADER, tuple(by_degree(SEEN)))
    ((key, knee),) = knees(made).items()
    assert key[0] == "grid"
    assert (knee.degree, knee.is_seen) == (4, True)
    assert sentences(made) == [
        "put 16 x 25 MB, 3-of-10, warm, grid: take 4: 200 MB/s in all, and more gain nothing (one run)."
    ]


def test_jobs_are_for_clients_with_that_option_and_for_put_and_get_each() -> None:
    samples = [
        *by_degree(SEEN, system="grid@http/cp"),
        *by_degree({1: 8.0, 2: 4.0, 4: 4.0}, system="grid@http/cp", scenario="get"),
        *by_degree(SEEN, system="grid@http/cp", scenario="check"),
        *by_degree(SEEN, system="grid@http/gateway"),
        *by_degree(SEEN, system="tahoe@foolscap/cli"),
        *by_degree(SEEN, system="scp"),
    ]
    made = Record(HEADER, tuple(samples))
    assert {key: jobs.degree for key, jobs in recommended_jobs(made).items()} == {
        ("grid@http/cp", "put"): 4,
        ("grid@http/cp", "get"): 2,
    }
    assert "grid@http/cp, put: use --jobs 4 (one run)." in list(sentences_of_fits(made))


def test_jobs_are_not_recommended_where_the_rate_still_grew() -> None:
    """Of two sets, the rate of one grew until the end."""
    larger = [evolve(one, size=2 * one.size) for one in by_degree(GROWS, system="grid@http/cp")]
    made = Record(HEADER, (*by_degree(SEEN, system="grid@http/cp"), *larger))
    assert recommended_jobs(made) == {}
    assert not any("--jobs" in line for line in sentences_of_fits(made))


def test_jobs_say_what_each_run_says() -> None:
    runs = [SEEN, {1: 8.0, 2: 2.1, 4: 2.1, 8: 2.0}, {1: 8.0, 2: 4.0, 4: 2.1, 8: 2.0}]
    made = Record(
        HEADER, tuple(one for run, times in enumerate(runs) for one in by_degree(times, run=run, system="grid/cp"))
    )
    assert "grid/cp, put: use --jobs 4 (2 to 4 in 3 runs)." in list(sentences_of_fits(made))


def copied(
    count: int, size: int, seconds: float, *, run: int = 0, factors: Mapping[str, Factor] | None = None
) -> Sample:
    """Files one after the other."""
    made = many_sample(count, size, 1)
    return evolve(made, seconds=seconds, run=run, factors={**made.factors, **(factors or {})})


def ordinary(scale: float = 1.0, *, run: int = 0, factors: Mapping[str, Factor] | None = None) -> list[Sample]:
    """10 ms a file and 10 ms a MB."""
    return [
        copied(count, size, scale * count * (0.01 + size * 1e-8), run=run, factors=factors)
        for count in (10, 1000)
        for size in (1000, 10**6)
    ]


def test_costs_of_a_file_and_of_a_byte_are_separated() -> None:
    ((_, cost),) = costs(Record(HEADER, tuple(ordinary()))).items()
    assert cost.per_file_s == pytest.approx(0.01)
    assert cost.per_byte_s == pytest.approx(1e-8)


@pytest.mark.parametrize("factor", ["k", "n", "format", "segment", "lost", "clients", "nodes", "site"])
def test_costs_of_unlike_work_are_fitted_apart(factor: str) -> None:
    kinds: tuple[Factor, ...] = ("chk", "mdmf") if factor in ("format", "site") else (3, 60)
    made = Record(
        HEADER, tuple(one for at, kind in enumerate(kinds) for one in ordinary(1 + 9 * at, factors={factor: kind}))
    )
    assert sorted(cost.per_file_s for cost in costs(made).values()) == pytest.approx([0.01, 0.1])
    other = evolve(
        made,
        samples=tuple(evolve(one, client="cli") if one.factors[factor] == kinds[1] else one for one in made.samples),
    )
    assert len(costs(other)) == 2


def test_costs_say_what_their_interval_is_and_how_well_they_fit() -> None:
    def said(runs: int) -> str:
        scales = [1.0, 1.1, 1.2][:runs]
        (line,) = sentences_of_fits(
            Record(HEADER, tuple(one for run in range(runs) for one in ordinary(scales[run], run=run)))
        )
        return line

    assert said(1) == "put, 3-of-10, warm, grid: time = 10 ms x files + 10 ms x MB (one run; median error 0%)."
    assert "(ranges of 2 runs: 10 to 11, 10 to 11; median error" in said(2)
    assert "(95 %: 8.75 to 13.8, 8.75 to 13.8, 3 runs; median error" in said(3)
    two = Record(HEADER, tuple(ordinary()[:2]))
    assert next(iter(sentences_of_fits(two))).endswith("(one run; from two sizes, so without a check).")


def test_fit_that_does_not_fit_is_left_out_and_counted() -> None:
    """Small files in a large set take a tenth of the others' time for each."""
    samples = ordinary()[:3] + [copied(1000, 10**4, 0.9), copied(10, 10**6, 5.0), copied(3, 10**6, 0.01)]
    made = Record(HEADER, tuple(samples))
    assert min(cost.error for cost in costs(made).values()) > WORST_FIT
    assert list(sentences_of_fits(made)) == [
        "1 of 1 fits of times to numbers of files and bytes are left out, because their median error is above 15%."
    ]
