"""Grid beside other programs, from the record of `size-count`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from perf.records.record import Record, Sample
from perf.reports.other_programs import beside_others
from perf.reports.published_texts import section
from tests.perf.samples import HEADER, sample


def moved(system: str, scenario: str, count: int, size: int, seconds: float, run: int = 0, cache: str = "") -> Sample:
    """A set of files, put or got by one command."""
    factors = {"count": count, "size": size} | ({"cache": cache} if cache else {})
    made = sample(system, run=run, seconds=seconds, scenario=scenario)
    return evolve(made, client="", factors=factors, count=count, size=count * size)


def of_sets(samples: Sequence[Sample], campaign: str = "size-count", **environment: object) -> Record:
    known: Mapping[str, object] = {**HEADER.environment, **environment}
    systems = tuple(dict.fromkeys(one.system for one in samples))
    return Record(evolve(HEADER, campaign=campaign, environment=known, systems=systems), tuple(samples))


def test_each_set_has_a_row_for_each_direction_and_each_program_a_column() -> None:
    made = of_sets(
        [
            moved("rclone@versitygw", "put", 4, 10**8, 1.849),
            moved("rclone@versitygw+tuned", "put", 4, 10**8, 1.0),
            moved("grid@http/gateway", "get", 1000, 10**4, 0.125),
            moved("grid@http/gateway", "put", 1000, 10**4, 11.2, cache="cold"),
            moved("rclone@versitygw", "put", 1000, 10**4, 1.96),
            moved("grid@http/gateway", "get", 1, 10**9, 100.6),
        ]
    )
    lines = beside_others([of_sets([], "other"), made])
    assert lines[0] == "### Beside other programs"
    assert "(campaign `size-count`, 2026-01-01, commit 0000000000, one run, so differences may be chance)" in lines[2]
    assert lines[4:10] == [
        "| work | Grid, gateway | rclone |",
        "| --- | --- | --- |",
        "| put 1,000 files of 10 KB, s | 11 | 2.0 |",
        "| get 1,000 files of 10 KB, s | 0.12 | - |",
        "| put 4 files of 100 MB, s | - | 1.8 |",
        "| get 1 file of 1 GB, s | 101 | - |",
    ]
    assert "3.33 bytes" in lines[11]


def test_medians_of_runs_are_shown_without_what_failed_or_warmed_up() -> None:
    times = [
        moved(name, "put", 100, 10**6, seconds, run)
        for name in ("scp", "grid@http/transfer")
        for run, seconds in enumerate((1.0, 3.0, 9.0))
    ]
    failed = evolve(times[0], seconds=None, error="OSError: full")
    warm = evolve(times[0], seconds=50.0, warmup=True)
    lines = beside_others([of_sets([*times, failed, warm])])
    assert "medians of 3 runs)" in lines[2]
    assert lines[6] == "| put 100 files of 1 MB, s | 3.0 | 3.0 |"


def test_record_without_grid_or_without_others_has_no_table() -> None:
    alone = of_sets([moved("grid@http/gateway", "put", 100, 10**6, 1.0)])
    others = of_sets([moved(name, "put", 100, 10**6, 1.0) for name in ("scp", "cp")])
    assert beside_others([alone]) == beside_others([others]) == beside_others([]) == []


def test_table_is_in_the_text_of_the_performance_page() -> None:
    made = of_sets([moved(name, "put", 100, 10**6, 1.0) for name in ("scp", "grid@http/gateway")])
    assert "\n### Beside other programs\n" in section([made], [], "")
