"""The command line of the harness."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from attrs import evolve

from perf.campaigns.campaign import MB, Campaign, Load
from perf.campaigns.catalogue import CAMPAIGNS
from perf.campaigns.labels import BASES, OPTIONS, parse_label, with_baselines
from perf.faults.command import add_faults
from perf.processes.installation import install_baseline, resolve
from perf.records.record import Header, Record, RecordError, RecordWriter, read_record
from perf.reports.report import AA_RUNS, compare, report, same, slower
from perf.reports.target_rows import target_tables
from perf.runs.runner import run_campaign
from perf.sampling.environment import capture, expect_own_tree, measure_floor
from perf.soak.command import add_soak

AA_OUTCOMES = {
    True: "passed, no difference between equals",
    False: "a difference between equals: do not believe this machine now",
    None: f"too few runs to tell, take {AA_RUNS} or more",
}

_LABELS_HELP = (
    f"with commas, of {', '.join(BASES)} (tahoe needs GRID_TAHOE), each with {', '.join(f'+{o}' for o in OPTIONS)}; "
    "grid@http:COMMIT is Grid as it was then"
)

TIMELINES_DRAWN = 6
"""Pictures of outliers in one report, of each record."""

RECORDS = Path(__file__).resolve().parent / "records"


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0 if all that was asked was done and nothing failed, 1 otherwise, 2 for wrong usage."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        status: int = options.action(options)
    except (RecordError, OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"perf: {error}", file=sys.stderr)
        return 1
    return status


def _run(options: argparse.Namespace) -> int:
    expect_own_tree()
    campaign = _chosen(options)
    _tell(f"{campaign.name}: {campaign.purpose}; about {campaign.duration} as it is usually run")
    seed = options.seed if options.seed is not None else time.time_ns() % 10**9
    with tempfile.TemporaryDirectory(prefix="grid-perf-", dir=options.directory) as work:
        environment = {**capture(Path(work)), "baselines": _set_up(campaign.systems)}
        floor = measure_floor(campaign.encodings)
        path = options.output or RECORDS / f"{campaign.name}-{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
        header = Header(
            campaign=campaign.name, seed=seed, environment=environment, systems=campaign.systems, floor=floor
        )
        with RecordWriter(path, header) as writer:
            failures = run_campaign(campaign, seed, Path(work), writer, tell=_tell)
    record = read_record(path)
    print(target_tables([record], all_rows=False))
    print(report(record))
    _tell(f"record: {path}")
    if campaign.is_aa:
        outcome = same(record)
        _tell(f"A/A check: {AA_OUTCOMES[outcome]}")
        return int(outcome is not True or failures > 0)
    if options.baseline:
        worse = slower(record)
        _tell(f"Against {options.baseline}: {_against(worse)}")
        return int(bool(worse) or failures > 0)
    return int(failures > 0)


def _set_up(systems: Sequence[str]) -> dict[str, str]:
    """Install the commits that the systems name, before anything is measured; what each is in full."""
    commits = {label.commit for label in map(parse_label, systems) if label.commit}
    for commit in sorted(commits):
        _tell(f"installing commit {commit}, unless it is installed")
        install_baseline(commit)
    return {commit: resolve(commit) for commit in sorted(commits)}


def _against(worse: list[str] | None) -> str:
    if worse is None:
        return f"too few runs to tell, take {AA_RUNS} or more"
    return f"slower at {'; '.join(worse)}" if worse else "nothing is slower"


def _chosen(options: argparse.Namespace) -> Campaign:
    campaign = CAMPAIGNS[options.campaign]
    systems = tuple(options.systems.split(",")) if options.systems else campaign.systems
    if options.aa:
        systems = (options.aa, f"{options.aa}#2")
        campaign = evolve(campaign, name=f"{campaign.name}-aa", systems=systems, runs=max(AA_RUNS, campaign.runs))
    elif options.baseline:
        campaign = evolve(
            campaign,
            name=f"{campaign.name}-baseline",
            systems=with_baselines(systems, options.baseline),
            runs=max(AA_RUNS, campaign.runs),
        )
    elif options.systems:
        campaign = evolve(campaign, systems=systems)
    if options.clients:
        campaign = evolve(campaign, clients=tuple(options.clients.split(",")))
    if options.sizes:
        sizes = [int(float(size) * MB) for size in options.sizes.split(",")]
        loads = dict.fromkeys(_sized(load, size) for load in campaign.loads for size in sizes)
        campaign = evolve(campaign, loads=tuple(loads))
    if options.seconds:
        loads = dict.fromkeys(evolve(load, seconds=load.seconds and options.seconds) for load in campaign.loads)
        campaign = evolve(campaign, loads=tuple(loads))
    return evolve(campaign, runs=options.runs or campaign.runs, repetitions=options.repetitions or campaign.repetitions)


def _sized(load: Load, size: int) -> Load:
    """The load with files of that size, where it has any."""
    return evolve(load, size=size, length=min(load.length, size)) if load.size else load


def _report(options: argparse.Namespace) -> int:
    records = [read_record(path) for path in options.records]
    text = "\n".join(
        [target_tables(records, all_rows=len(records) > 1), *(report(record, options.subject) for record in records)]
    )
    if options.output is None:
        print(text)
        return 0
    options.output.parent.mkdir(parents=True, exist_ok=True)
    names = [path.stem for path in options.records]
    pictures = [_pictures(record, options.output.parent / name) for record, name in zip(records, names, strict=True)]
    links = [f"![{picture.stem}]({picture.name})" for drawn in pictures for picture in drawn]
    options.output.write_text("\n".join([text, *links, ""]))
    _tell(f"report: {options.output}")
    return 0


def _pictures(record: Record, stem: Path) -> list[Path]:
    """One of the record, if there is anything to draw, and one of each of its timelines."""
    from perf.reports.plot import plot, plot_timeline

    drawn = []
    if next(iter(record.measured()), None) is not None:
        drawn.append(stem.with_suffix(".png"))
        plot(record, drawn[-1])
    for kept in record.timelines[:TIMELINES_DRAWN]:
        drawn.append(stem.with_name(f"{stem.name}-{kept.run}-{kept.order}.png"))
        plot_timeline(record, kept, drawn[-1])
    return drawn


def _compare(options: argparse.Namespace) -> int:
    print(compare(read_record(options.before), read_record(options.after)))
    return 0


def _plot(options: argparse.Namespace) -> int:
    from perf.reports.plot import plot

    plot(read_record(options.record), options.picture)
    return 0


def _timeline(options: argparse.Namespace) -> int:
    from perf.reports.plot import plot_timeline

    record = read_record(options.record)
    for kept in record.timelines:
        if (kept.run, kept.order) == (options.run, options.order):
            plot_timeline(record, kept, options.picture)
            return 0
    raise ValueError(f"{options.record} has no timeline of run {options.run}, order {options.order}")


def _list(options: argparse.Namespace) -> int:
    print(_campaigns())
    return 0


def _campaigns() -> str:
    return "\n".join(f"{one.name:12} {one.duration:>11}  {one.purpose}" for one in CAMPAIGNS.values())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m perf", description="Measure grids side by side.")
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser(
        "run",
        help="run a campaign and keep its raw samples",
        epilog="campaigns:\n" + _campaigns(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.set_defaults(action=_run)
    run.add_argument("campaign", choices=list(CAMPAIGNS))
    run.add_argument("--systems", help=_LABELS_HELP)
    run.add_argument("--clients", help="warm,gateway,cli")
    run.add_argument("--sizes", help="of the files, MB, with commas")
    run.add_argument("--seconds", type=float, help="of idleness")
    run.add_argument("--runs", type=int, help="fresh grids this many times")
    run.add_argument("--repetitions", type=int, help="of each cell in a run")
    run.add_argument("--seed", type=int, help="of the order; from the clock if not given")
    run.add_argument("--aa", metavar="SYSTEM", help="the system against itself, which must show no difference")
    run.add_argument("--baseline", metavar="COMMIT", help="the grids of the campaign beside those of an older commit")
    run.add_argument("--directory", type=Path, help="where the grids keep their data")
    run.add_argument("--output", type=Path, help="the record's file; below perf/records if not given")
    shown = commands.add_parser("report", help="the targets, and what records say, in Markdown")
    shown.set_defaults(action=_report)
    shown.add_argument("--subject", help="the system that the others are compared with; the first if not given")
    shown.add_argument("--output", type=Path, help="a file of Markdown to write, with pictures beside it")
    shown.add_argument("records", type=Path, nargs="+")
    compared = commands.add_parser("compare", help="one record against another")
    compared.set_defaults(action=_compare)
    compared.add_argument("before", type=Path)
    compared.add_argument("after", type=Path)
    drawn = commands.add_parser("plot", help="a picture of a record (needs matplotlib)")
    drawn.set_defaults(action=_plot)
    drawn.add_argument("record", type=Path)
    drawn.add_argument("picture", type=Path)
    add_soak(commands)
    add_faults(commands)
    told = commands.add_parser("timeline", help="a picture of one operation that took long (needs matplotlib)")
    told.set_defaults(action=_timeline)
    told.add_argument("record", type=Path)
    told.add_argument("run", type=int)
    told.add_argument("order", type=int)
    told.add_argument("picture", type=Path)
    commands.add_parser("list", help="the campaigns").set_defaults(action=_list)
    return parser


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
