"""Doublings of k within a system: the same time, or twice, and why."""

from __future__ import annotations

import pytest
from attrs import evolve

from perf.records.record import Record, Sample
from perf.reports.findings import sentences
from perf.reports.needed import BETWEEN, SAME, TWICE, sentences_of_k, steps
from tests.perf.samples import HEADER, sample


def get(k: int, seconds: float, *, run: int = 0, size: int = 10**8, requests: int = 40) -> Sample:
    factors = {"k": k, "n": 2 * k, "happy": 6, "size": size, "segment": 2**17}
    return evolve(sample(run=run, seconds=seconds, scenario="get"), factors=factors, size=size, requests=requests)


def of(*samples: Sample) -> Record:
    return Record(HEADER, samples)


@pytest.mark.parametrize(
    ("at_60", "verdict"), [((2.0, 1.9, 2.1), TWICE), ((1.0, 1.03, 1.06), SAME), ((1.2, 1.5, 1.9), BETWEEN)]
)
def test_doubling_has_a_verdict_from_its_interval(at_60: tuple[float, ...], verdict: str) -> None:
    record = of(*(get(30, 1.0, run=run) for run in range(3)), *(get(60, at, run=run) for run, at in enumerate(at_60)))
    (step,) = steps(record)
    assert (step.low, step.high, step.verdict) == (30, 60, verdict)
    assert step.ratio.median == sorted(at_60)[1]


def test_sentence_gives_the_ratio_and_the_reasons() -> None:
    (line,) = sentences_of_k(of(get(30, 1.0), get(60, 2.0, requests=80)))
    assert line.startswith(
        "get 100 MB, segments of 128 KiB, warm, grid: k = 60 takes 2 times the time of k = 30 (one run): nearer to twice by "
        "one run, too few for a verdict. "
        "Blocks of 2,185 bytes instead of 4,370; 2.00 times the messages; "
    )
    assert line in sentences(of(get(30, 1.0), get(60, 2.0, requests=80)))


def test_other_values_of_k_and_other_work_are_not_compared() -> None:
    assert steps(of(get(30, 1.0), get(45, 1.0))) == []
    assert steps(of(get(30, 1.0), get(60, 1.0, size=10**6))) == []


def test_record_in_which_both_are_true_says_for_which_work() -> None:
    record = of(get(30, 1.0), get(60, 2.0), get(30, 0.1, size=10**6), get(60, 0.1, size=10**6))
    assert sentences_of_k(record)[-1] == (
        "grid, k = 60 against k = 30: nearer to twice by one run, too few for a verdict for get 100 MB, segments of 128 KiB, "
        "warm; but nearer to the same by one run, too few for a verdict for get 1 MB, segments of 128 KiB, warm."
    )
