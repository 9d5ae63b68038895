"""Reports on samples with known answers."""

from __future__ import annotations

import pytest
from attrs import evolve

from perf.records.record import Record, RecordError
from perf.reports.report import compare, report, same, slower, speedups, verdict
from perf.sampling.statistics import Interval
from tests.perf.samples import HEADER, many_sample, range_sample, record, sample

TWICE = {"grid": [[1.0, 1.1, 0.9], [4.0, 4.4, 3.6], [2.0]], "tahoe": [[2.0, 2.2, 1.8], [8.0, 8.8, 7.2], [4.0]]}


def row(text: str, start: str) -> list[str]:
    """The cells of the one row that starts so."""
    (found,) = [line for line in text.splitlines() if line.startswith(start)]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_report_of_a_system_twice_as_fast_says_two() -> None:
    cells = row(report(record(TWICE)), "| put 100 MB, 3-of-10, warm | 5")
    assert cells[1].endswith(", 7")
    assert cells[3] == "2.00 [2, 2] (2.00-2.00), 3 runs"


def test_report_of_a_single_run_claims_no_interval_of_its_ratio() -> None:
    cells = row(report(record({"grid": [[1.0, 1.1]], "tahoe": [[2.0, 2.2]]})), "| put 100 MB, 3-of-10, warm | 9")
    assert cells[3] == "2.00, 1 run"


def test_report_says_whether_a_spread_is_an_interval_or_a_range() -> None:
    text = report(record({"grid": [[1.0, 1.25], [1.0]], "tahoe": [[2.0], [2.5], [2.0]]}))
    cells = row(text, "| put 100 MB, 3-of-10, warm | 100")
    assert cells[1:] == ["100 MB/s (80-100), 3", "50 MB/s [33.7, 63.9], 3", "2.14 (1.78-2.50), 2 runs"]
    titles = row(text, "| work | grid [95")
    assert titles[1:] == ["grid [95 %] (range), n", "tahoe [95 %] (range), n", "grid / tahoe [95 %] (range), runs"]


def test_report_gives_cost_and_memory_above_idle() -> None:
    cells = row(report(record(TWICE)), "| put 100 MB, 3-of-10, warm | tahoe")
    assert cells[2:] == ["10.0", "0.25", "0.12", "80 (30)", "60", "334.000, 1.000", "40", "-, -"]


def test_report_keeps_failures_as_null() -> None:
    good = record({"grid": [[1.0]], "tahoe": []})
    failed = evolve(sample("tahoe"), seconds=None, error="RuntimeError: no")
    text = report(Record(good.header, (*good.samples, failed)))
    assert row(text, "| put 100 MB, 3-of-10, warm | 100 MB/s")[2:] == ["null", "null"]
    assert "Failed operations: 1 of 2." in text
    assert "- tahoe, put 100 MB, 3-of-10, warm: RuntimeError: no" in text


def test_report_ignores_warmups() -> None:
    plain = record(TWICE)
    warm = Record(plain.header, (*plain.samples, evolve(sample(seconds=1e-6), warmup=True)))
    assert speedups(warm, "grid", "tahoe") == speedups(plain, "grid", "tahoe")


def test_same_when_equals_differ_by_noise_is_true() -> None:
    noisy = {"grid": [[1.0], [1.1], [0.9], [1.0]] * 2, "grid#2": [[1.05], [1.0], [0.95], [1.02]] * 2}
    assert same(record(noisy)) is True


def test_same_when_one_is_always_slower_is_false() -> None:
    assert same(record({"grid": [[1.0], [1.1]] * 4, "grid#2": [[1.3], [1.4]] * 4})) is False


def test_same_of_a_few_runs_does_not_tell() -> None:
    assert same(record({"grid": [[1.0], [1.1], [0.9]], "grid#2": [[1.3], [1.4], [1.2]]})) is None
    assert same(record({"grid": [], "grid#2": []})) is None


def test_compare_of_records_without_common_work_is_refused() -> None:
    with pytest.raises(RecordError, match="nothing to compare"):
        compare(record({"grid": [[1.0]]}), record({"tahoe": [[1.0]]}))


def test_compare_and_report_give_an_even_number_of_runs_the_same_median() -> None:
    """The median of two speeds is not the speed of the median of two times."""
    taken = record({"grid": [[1.0], [4.0]]})
    start = "| put 100 MB, 3-of-10, warm | "
    assert row(report(taken), f"{start}62.5")[1].startswith("62.5 MB/s")
    assert row(compare(taken, taken), f"{start}grid")[2:5] == ["62.5 MB/s, 2", "62.5 MB/s, 2", "1.00"]


def test_compare_of_a_halved_time_says_faster() -> None:
    tahoe = [[3.0, 3.1], [3.0, 2.9], [3.1, 2.9]]
    before = record({"grid": [[2.0, 2.1], [2.0, 1.9], [2.0, 2.0]], "tahoe": tahoe})
    after = record({"grid": [[1.0, 1.05], [1.0, 0.95], [1.0, 1.0]], "tahoe": tahoe})
    text = compare(before, after)
    cells = row(text, "| put 100 MB, 3-of-10, warm | grid")
    assert cells[2:4] == ["50 MB/s, 3", "100 MB/s, 3"]
    assert cells[4].startswith("2.00 [")
    assert cells[5] == "faster"
    assert row(text, "| put 100 MB, 3-of-10, warm | tahoe")[5] == "no difference"


@pytest.mark.parametrize("runs", [1, 2])
def test_compare_of_few_runs_has_no_verdict_however_many_samples_they_have(runs: int) -> None:
    before, after = (record({"grid": [[seconds] * 9] * count}) for seconds, count in ((2.0, runs), (1.0, 3)))
    for one, other in ((before, after), (after, before)):
        cells = row(compare(one, other), "| put 100 MB, 3-of-10, warm | grid")
        assert cells[5] == "too few runs"
        assert "[" not in cells[4]


def test_compare_resamples_runs_and_widens_for_all_rows() -> None:
    """Within a run all samples agree; the runs of each side do not."""
    before = record({"grid": [[2.0] * 9, [1.5] * 9, [2.5] * 9]})
    after = record({"grid": [[1.6] * 9, [1.2] * 9, [2.0] * 9]})
    assert row(compare(before, after), "| put 100 MB, 3-of-10, warm | grid")[5] == "no difference"
    clear = [
        record({f"grid#{at}": [[seconds], [seconds * 1.05], [seconds * 0.95]] for at in range(2, 52)})
        for seconds in (1.2, 1.0)
    ]
    assert row(compare(*clear), "| put 100 MB, 3-of-10, warm | grid#2 ")[5] == "no difference"
    alone = [record({"grid": [[seconds], [seconds * 1.05], [seconds * 0.95]]}) for seconds in (1.2, 1.0)]
    assert row(compare(*alone), "| put 100 MB, 3-of-10, warm | grid")[5] == "faster"


def test_report_of_another_subject_compares_with_that() -> None:
    text = report(record(TWICE), "tahoe")
    assert "tahoe / grid" in text
    assert row(text, "| put 100 MB, 3-of-10, warm | 5")[3] == "0.50 [0.5, 0.5] (0.50-0.50), 3 runs"
    with pytest.raises(ValueError, match="no system 'ftp'"):
        report(record(TWICE), "ftp")


def test_report_with_a_floor_sets_it_beside_whole_files_only() -> None:
    plain = record({"grid": [[1.0]]})
    text = report(Record(HEADER, (*plain.samples, range_sample(65536), many_sample(200, 1024, 16))))
    assert row(text, "| put 100 MB, 3-of-10, warm | 100 MB/s")[-1] == "126 MB/s"
    assert row(text, "| range 64 KiB of 100 MB, 3-of-10, warm | 500 ms")[-1] == "-"
    assert row(text, "| put 200 x 1 KiB at 16, 3-of-10, warm | 400 files/s")[-1] == "-"
    assert "tls 1000" in text
    assert "floor" not in report(plain)


def test_verdict_follows_the_interval() -> None:
    assert verdict(Interval(1.2, 1.5)) == "faster"
    assert verdict(Interval(0.5, 0.9)) == "slower"
    assert verdict(Interval(0.9, 1.1)) == "no difference"


def test_report_beside_a_baseline_compares_each_system_with_its_own() -> None:
    times = {
        "grid@http": [[1.0], [1.1]] * 4,
        "grid@http:054f5b7": [[2.0], [2.2]] * 4,
        "grid": [[3.0], [3.3]] * 4,
        "grid:054f5b7": [[1.5], [1.65]] * 4,
    }
    text = report(record(times))
    assert row(text, "| put 100 MB, 3-of-10, warm | grid@http | 2.00")[3] == "faster"
    assert row(text, "| put 100 MB, 3-of-10, warm | grid | 0.50")[3] == "slower"
    assert "grid@http / grid:054f5b7" not in text
    assert slower(record(times)) == ["put 100 MB, 3-of-10, warm, grid"]


def test_slower_of_a_few_runs_does_not_tell() -> None:
    assert slower(record({"grid": [[2.0]] * 3, "grid:054f5b7": [[1.0]] * 3})) is None
    assert slower(record({"grid": [[2.0]] * 8, "tahoe": [[1.0]] * 8})) is None
