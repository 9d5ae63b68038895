"""What a factor changes within one system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from attrs import evolve

from perf.records.record import Factor, Record, Sample
from perf.reports.findings import sentences
from perf.reports.levels import LONGER, NONE, SHORTER, changes, sentences_of_levels
from tests.perf.samples import HEADER, sample


def at(seconds: float, factors: Mapping[str, Factor], *, run: int = 0, scenario: str = "put") -> Sample:
    made = sample(run=run, seconds=seconds, scenario=scenario)
    return evolve(made, factors={"size": 10**8, **factors})


def runs(times: Mapping[Factor, Sequence[float]], factor: str) -> Record:
    """Seconds of each run by level."""
    made = [at(seconds, {factor: value}, run=run) for value, mine in times.items() for run, seconds in enumerate(mine)]
    return Record(HEADER, tuple(made))


def test_sentence_has_all_levels_against_the_least() -> None:
    made = runs({6: [3.0], 1: [1.0], 3: [2.0]}, "lost")
    assert list(sentences_of_levels(made)) == [
        "put 100 MB, warm, grid, of the time with lost 1: lost 3 2 times, lost 6 3 times (one run, so no verdict)."
    ]
    assert next(iter(sentences_of_levels(made))) in sentences(made)


@pytest.mark.parametrize(
    ("factor", "levels", "said"),
    [
        ("key", ("convergent", "random"), "of the time with key convergent: key random 2 times"),
        ("way", ("whole", "interrupted"), "of the time with way whole: way interrupted 2 times"),
        ("segment", (131072, 1048576), "of the time with segment 128 KiB: segment 1 MiB 2 times"),
        ("site", ("wan1", "wan30, on ext4"), "of the time with site wan1: site wan30, on ext4 2 times"),
        ("clients", (2, 10), "of the time with clients 2: clients 10 2 times"),
        ("nodes", (10, 100), "of the time with nodes 10: nodes 100 2 times"),
    ],
)
def test_factors_of_campaigns_have_sentences(factor: str, levels: tuple[Factor, Factor], said: str) -> None:
    (line,) = sentences_of_levels(runs({levels[0]: [1.0], levels[1]: [2.0]}, factor))
    assert said in line


def test_same_again_is_compared_with_the_first_copy() -> None:
    (line,) = sentences_of_levels(Record(HEADER, (at(2.0, {}), at(0.5, {}, scenario="put again"))))
    assert line == (
        "put 100 MB, warm, grid, of the time with the first copy: the same again 0.25 times (one run, so no verdict)."
    )


def test_ranges_from_elsewhere_are_compared_with_those_from_the_start() -> None:
    """Random places are no factor of a sample."""
    samples = [at(1.0, {"from": "middle", "length": 9}, scenario="range"), at(3.0, {"length": 9}, scenario="range")]
    (line,) = sentences_of_levels(Record(HEADER, (*samples, at(2.0, {"from": "start", "length": 9}, scenario="range"))))
    assert line.endswith(
        "of the time with from start: from middle 0.5 times, from random 1.5 times (one run, so no verdict)."
    )


def test_base_is_the_same_whichever_was_measured_first() -> None:
    for order in (("convergent", "random"), ("random", "convergent")):
        seconds = {"convergent": [2.0], "random": [1.0]}
        (line,) = sentences_of_levels(runs({key: seconds[key] for key in order}, "key"))
        assert "of the time with key convergent: key random 0.5 times" in line


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [([2.0, 2.1, 2.2], LONGER), ([0.5, 0.51, 0.52], SHORTER), ([0.5, 1.0, 2.0], NONE), ([2.0, 2.0], "")],
)
def test_level_has_a_verdict_from_three_runs_on(seconds: list[float], verdict: str) -> None:
    made = runs({1: [1.0, 1.0, 1.0][: len(seconds)], 3: seconds}, "lost")
    (change,) = changes(made)
    assert change.verdict == verdict
    (line,) = sentences_of_levels(made)
    assert line.endswith(f": {verdict})." if verdict else "(range of 2 runs: 2 to 2); too few runs for a verdict.")


def test_level_is_clear_among_all_rows_or_not_at_all() -> None:
    clear: dict[Factor, list[float]] = {1: [1.0, 1.0, 1.0], 3: [1.1, 1.12, 1.14]}
    (alone,) = changes(runs(clear, "lost"))
    among = changes(runs(clear | {level: [1.1, 1.12, 1.14] for level in range(4, 24)}, "lost"))
    assert (alone.verdict, {change.verdict for change in among}) == (LONGER, {NONE})
    assert str(among[0]).endswith("no difference shown among 21 rows)")


def test_levels_of_other_work_and_other_systems_are_not_compared() -> None:
    other = evolve(at(9.0, {"lost": 3}), system="tahoe")
    assert (
        changes(Record(HEADER, (at(1.0, {"lost": 1}), other, at(5.0, {"lost": 3}, scenario="get"), at(2.0, {})))) == []
    )
