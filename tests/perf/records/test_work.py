"""How work is named and measured."""

from __future__ import annotations

import pytest
from attrs import evolve

from perf.records.record import Sample
from perf.records.work import bound, time_of, work_of, works_of
from tests.perf.samples import HEADER, many_sample, range_sample, sample, tree_sample

SEGMENTED = evolve(sample(), factors={"k": 3, "n": 10, "size": 10**8, "segment": 131072})
FILES = ((100, 1.0, 1.0, 1.5, ""), (100, 3.0, 3.5, 4.0, ""))
OPEN = evolve(
    sample(), factors={"mode": "staccato", "count": 2}, size=200, count=2, client="", seconds=4.0, files=FILES
)
MUTABLE = evolve(sample(), factors={"k": 3, "n": 10, "size": 10**8, "format": "mdmf"})


@pytest.mark.parametrize(
    ("one", "name", "unit", "amount"),
    [
        (sample(), "put 100 MB, 3-of-10, warm", "MB/s", 200.0),
        (SEGMENTED, "put 100 MB, 3-of-10, segments of 128 KiB, warm", "MB/s", 200.0),
        (range_sample(1), "range 1 B of 100 MB, 3-of-10, warm", "ms", 500.0),
        (range_sample(10**7), "range 10 MB of 100 MB, 3-of-10, warm", "ms", 500.0),
        (many_sample(200, 1024, 16), "put 200 x 1 KiB at 16, 3-of-10, warm", "files/s", 400.0),
        (MUTABLE, "put 100 MB, MDMF, 3-of-10, warm", "MB/s", 200.0),
        (tree_sample("mkdir", 10), "mkdir each of 10, 3-of-10, warm", "ms", 50.0),
        (tree_sample("add-batch", 100), "add-batch 100 children, 3-of-10, warm", "ms", 500.0),
        (tree_sample("idle", 1), "idle, 3-of-10, warm", "s", 0.5),
        (many_sample(100, 10**6, 4), "put 100 x 1 MB at 4, 3-of-10, warm", "MB/s", 200.0),
        (OPEN, "put 2 x 100 B, mode staccato", "ms of a file", 500.0),
    ],
)
def test_work_of_a_sample_has_a_name_and_a_unit(one: Sample, name: str, unit: str, amount: float) -> None:
    work = work_of(one)
    assert (str(work), work.unit, work.measure(0.5)) == (name, unit, amount)


def test_time_of_an_open_loop_is_the_mean_of_what_files_waited() -> None:
    assert time_of(OPEN) == pytest.approx(0.75)
    assert time_of(evolve(OPEN, files=())) is None
    assert time_of(evolve(OPEN, factors={"mode": "limited", "count": 2})) == 4.0
    assert time_of(evolve(OPEN, seconds=None, error="no")) is None


def test_works_are_distinguished_and_ordered_by_number() -> None:
    lengths = [10**7, 65536, 1, 65536]
    works = works_of([range_sample(length) for length in lengths])
    assert [work.size for work in works] == [1, 65536, 10**7]


def test_bound_of_a_get_adds_up_what_it_cannot_do_without() -> None:
    get = sample(scenario="get")
    assert bound(HEADER.floor, work_of(get)) == pytest.approx(1 / (1 / 1000 + 2 / 1500 + 1 / 6000))
    mutable = evolve(get, factors={**get.factors, "format": "mdmf"})
    assert bound(HEADER.floor, work_of(mutable)) == pytest.approx(1 / (1 / 1000 + 1 / 1500 + 1 / 6000))


def test_bound_of_what_was_not_measured_is_unknown() -> None:
    assert bound(HEADER.floor, work_of(sample())) is not None
    assert bound(HEADER.floor, work_of(evolve(sample(), factors={"k": 60, "n": 120, "size": 10**8}))) is None
    assert bound(HEADER.floor, work_of(range_sample(1))) is None
    assert bound({}, work_of(sample(scenario="get"))) is None
