"""The rows that the project publishes, and what records say about them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, field, frozen

from perf.records.record import Record, RecordError
from perf.records.work import Work, work_of
from perf.reports.report import rate, speedups, works
from perf.sampling.statistics import Estimate, median

GRIDS = ("grid@http", "grid@foolscap")
PEER = "tahoe@foolscap"

BIG, SMALL = 100_000_000, 1024


@frozen(kw_only=True)
class Row:
    """A row of the table. factors: of its samples, except the default 3-of-10.

    is_quoted: whether the README quotes it.
    """

    label: str
    scenario: str
    factors: Mapping[str, float | str] = field(factory=dict)
    is_quoted: bool = False

    def fits(self, work: Work) -> bool:
        """Whether this is the work, done by a warm client on this machine without limits."""
        known = {**dict(work.factors), "count": work.count}
        wanted = {"k": 3, "n": 10, "count": 1, **self.factors}
        told = set(known) - {"concurrency"} == set(wanted)
        return (
            told
            and work.client == "warm"
            and (work.scenario, wanted)
            == (
                self.scenario,
                {name: known[name] for name in wanted},
            )
        )


ROWS = (
    Row(label="get 100 MB", scenario="get", factors={"size": BIG}, is_quoted=True),
    Row(label="put 100 MB", scenario="put", factors={"size": BIG}, is_quoted=True),
    Row(label="get 1 MB", scenario="get", factors={"size": 10**6}),
    Row(label="put 1 MB", scenario="put", factors={"size": 10**6}),
    Row(label="1 byte of 100 MB", scenario="alacrity", factors={"size": BIG, "length": 1}),
    Row(label="1 MB of 100 MB", scenario="range", factors={"size": BIG, "length": 10**6}),
    Row(
        label="get 200 files of 1 KiB, 16 at a time",
        scenario="get",
        factors={"size": SMALL, "count": 200},
        is_quoted=True,
    ),
    Row(label="put 200 files of 1 KiB, 16 at a time", scenario="put", factors={"size": SMALL, "count": 200}),
    Row(label="get 100 files of 1 MB, 4 at a time", scenario="get", factors={"size": 10**6, "count": 100}),
    Row(label="put 100 files of 1 MB, 4 at a time", scenario="put", factors={"size": 10**6, "count": 100}),
    Row(label="get 100 MB, MDMF", scenario="get", factors={"size": BIG, "format": "mdmf"}),
    Row(label="put 100 MB, MDMF", scenario="put", factors={"size": BIG, "format": "mdmf"}),
    Row(
        label="change 1 KiB in a mutable file of 100 MB",
        scenario="overwrite",
        factors={"size": BIG, "length": SMALL, "format": "mdmf"},
        is_quoted=True,
    ),
    Row(label="list 1,000 children", scenario="list", factors={"count": 1000}, is_quoted=True),
)
"""The rows in order. Those without records are omitted, but the README's five must exist."""


@frozen(kw_only=True)
class Measured:
    """A measured row: each system's result in words, and the ratios of speeds. record: the one that they are from."""

    row: Row
    record: Record
    rates: Mapping[str, str]
    ratios: Mapping[str, Estimate]


def measured(records: Sequence[Record]) -> list[Measured]:
    """The rows with records, each from the record with the most samples; RecordError if one of the five is missing."""
    chosen: dict[str, tuple[Row, Record, Work]] = {}
    for row in ROWS:
        candidates = list(_candidates(records, row))
        if candidates:
            best = max(candidates, key=lambda one: len(list(times_of(one[0], one[1], PEER))))
            chosen[row.label] = (row, *best)
    missing = [row.label for row in ROWS if row.is_quoted and row.label not in chosen]
    if missing:
        raise RecordError(
            f"these records lack what the README quotes: {'; '.join(missing)}. Run the campaigns put-get, small-files, mutable "
            f"and directories with {', '.join([*GRIDS, PEER])}"
        )
    return [_measure(record, work, row) for row, record, work in chosen.values()]


def _candidates(records: Sequence[Record], row: Row) -> Iterator[tuple[Record, Work]]:
    for record in records:
        if PEER in record.header.systems and set(GRIDS) <= set(record.header.systems):
            yield from ((record, work) for work in works(record) if row.fits(work))


def _measure(record: Record, work: Work, row: Row) -> Measured:
    rates = {}
    for system in (*GRIDS, PEER):
        times = list(times_of(record, work, system))
        rates[system] = rate(work, median(times)) if times else "-"
    only = evolve(record, samples=tuple(sample for sample in record.samples if work_of(sample) == work))
    ratios = {system: speedups(only, system, PEER).get(work) for system in GRIDS}
    return Measured(
        row=row, record=record, rates=rates, ratios={name: one for name, one in ratios.items() if one is not None}
    )


def times_of(record: Record, work: Work, system: str) -> Iterator[float]:
    """Seconds of a system's samples of this work."""
    for sample in record.measured():
        if sample.system == system and sample.seconds is not None and work_of(sample) == work:
            yield sample.seconds
