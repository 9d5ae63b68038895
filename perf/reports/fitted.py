"""What a record fits: the cost of a file and of a byte, and how many files at a time are enough, as sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve, frozen

from perf.records.record import Record, Sample
from perf.records.work import Work, work_of
from perf.sampling.fits import Cost, Knee, Point, find_knee, fit_cost
from perf.sampling.statistics import Interval, uncertainty

FITTED = ("size", "count", "concurrency")
"""Factors over which costs are fitted, or which are equal. All others separate kinds of work."""
CHECKED = 3
"""Sizes and counts that show whether the fit of two costs fits; it always fits two."""
WORST_FIT = 0.15
"""The greatest median error with which time is still called a sum of the two costs."""
JOBS_CLIENTS = ("cli", "cp", "transfer", "transfer-pack")
"""Clients of Grid whose command has the option --jobs."""


def costs(record: Record) -> dict[tuple[str, str], Cost]:
    """The cost per file and per byte, by system and work, where files of several sizes were moved one after the other."""
    runs: dict[tuple[str, str], dict[int, list[Point]]] = {}
    for sample in record.measured():
        if (
            sample.size
            and sample.seconds
            and "length" not in sample.factors
            and sample.factors.get("concurrency", 1) == 1
        ):
            mine = runs.setdefault((sample.system, _fitted(sample)), {}).setdefault(sample.run, [])
            mine.append(Point(files=sample.count, bytes=sample.size, seconds=sample.seconds))
    fits = {key: fit_cost(list(mine.values())) for key, mine in runs.items()}
    return {key: cost for key, cost in fits.items() if cost is not None}


def _fitted(sample: Sample) -> str:
    """The key of a fit: all of the work but the sizes and counts over which it is fitted."""
    factors = {name: value for name, value in sample.factors.items() if name not in FITTED}
    encoding = [f"{factors.pop('k')}-of-{factors.pop('n', None)}"] if "k" in factors else []
    told = [f"{name} {value}" for name, value in factors.items()]
    return ", ".join([sample.scenario, *encoding, *told, *([sample.client] if sample.client else [])])


def knees(record: Record) -> dict[tuple[str, str], Knee]:
    """The concurrency beyond which nothing is gained, by system and work, where several were tried."""
    return {(system, str(work)): _knee(rates, work.unit) for (system, work), rates in _rates(record).items()}


Rates = Mapping[int, Mapping[int, list[float]]]
"""By concurrency and run."""


def _rates(record: Record) -> dict[tuple[str, Work], Rates]:
    """The rates of systems and works, without the concurrency, where several were tried."""
    rates: dict[tuple[str, Work], dict[int, dict[int, list[float]]]] = {}
    for sample in record.measured():
        degree = sample.factors.get("concurrency")
        if sample.seconds and isinstance(degree, int) and "mode" not in sample.factors:
            work = work_of(sample)
            rest = evolve(work, factors=tuple(one for one in work.factors if one[0] != "concurrency"))
            degrees = rates.setdefault((sample.system, rest), {})
            degrees.setdefault(degree, {}).setdefault(sample.run, []).append(work.measure(sample.seconds))
    return {key: degrees for key, degrees in rates.items() if len(degrees) > 1}


def _knee(rates: Rates, unit: str) -> Knee:
    return find_knee({degree: [rate for run in runs.values() for rate in run] for degree, runs in rates.items()}, unit)


def _alone(rates: Rates) -> list[int]:
    """The knees of single runs."""
    runs = {run for mine in rates.values() for run in mine}
    known = [{degree: mine[run] for degree, mine in rates.items() if run in mine} for run in sorted(runs)]
    return [find_knee(one).degree for one in known if len(one) > 1]


@frozen(kw_only=True)
class Jobs:
    """Files at a time that suit this client and these servers. alone: as each run by itself says."""

    degree: int
    alone: tuple[int, ...]


def recommended_jobs(record: Record) -> dict[tuple[str, str], Jobs]:
    """The jobs for put and get, by system and scenario, of clients that have such an option: the greatest knee of its works.

    Nothing where the rate of a work still grew at the most that were tried.
    """
    found: dict[tuple[str, str], list[tuple[Knee, list[int]]]] = {}
    for (system, work), rates in _rates(record).items():
        base, _, client = system.partition("/")
        if base.startswith("grid") and client in JOBS_CLIENTS and work.scenario in ("put", "get"):
            found.setdefault((system, work.scenario), []).append((_knee(rates, work.unit), _alone(rates)))
    return {
        key: Jobs(degree=knee.degree, alone=tuple(alone))
        for key, mine in found.items()
        if all(knee.is_seen for knee, _ in mine)
        for knee, alone in [max(mine, key=lambda one: one[0].degree)]
    }


def sentences_of_fits(record: Record) -> Iterable[str]:
    """A sentence for each knee, cost and recommendation."""
    for (system, work), rates in _rates(record).items():
        yield f"{work}, {system}: {_knee(rates, work.unit)} ({_agreement(_alone(rates))})."
    fits = costs(record)
    for (system, what), cost in fits.items():
        if cost.error <= WORST_FIT:
            ends = [_times(cost.per_file_interval, 1e3), _times(cost.per_byte_interval, 1e9)]
            error = f"median error {cost.error:.0%}" if cost.kinds >= CHECKED else "from two sizes, so without a check"
            yield f"{what}, {system}: time = {_sum(cost)} ({uncertainty(ends, cost.runs)}; {error})."
    if left_out := sum(cost.error > WORST_FIT for cost in fits.values()):
        yield (
            f"{left_out} of {len(fits)} fits of times to numbers of files and bytes are left out, because their median error "
            f"is above {WORST_FIT:.0%}."
        )
    for (system, scenario), jobs in recommended_jobs(record).items():
        yield f"{system}, {scenario}: use --jobs {jobs.degree} ({_agreement(jobs.alone)})."


def _sum(cost: Cost) -> str:
    return f"{cost.per_file_s * 1e3:.3g} ms x files + {cost.per_byte_s * 1e9:.3g} ms x MB"


def _times(interval: Interval, factor: float) -> Interval:
    return Interval(interval.low * factor, interval.high * factor)


def _agreement(degrees: Iterable[int]) -> str:
    """What the runs say, each by itself."""
    known = list(degrees)
    if len(known) < 2:
        return "one run"
    least, most = min(known), max(known)
    return f"{least} in each of {len(known)} runs" if least == most else f"{least} to {most} in {len(known)} runs"
