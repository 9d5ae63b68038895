"""The command line of the harness."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attrs import evolve

from perf.campaigns import ALL_SYSTEMS, CAMPAIGNS, MB, Campaign
from perf.environment import capture, measure_floor
from perf.records import Header, RecordError, RecordWriter, read_record
from perf.report import AA_RUNS, compare, report, same
from perf.runner import run_campaign

AA_OUTCOMES = {
    True: "passed, no difference between equals",
    False: "a difference between equals: do not believe this machine now",
    None: f"too few runs to tell, take {AA_RUNS} or more",
}

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
    campaign = _chosen(options)
    seed = options.seed if options.seed is not None else time.time_ns() % 10**9
    with tempfile.TemporaryDirectory(prefix="grid-perf-", dir=options.directory) as work:
        environment = capture(Path(work))
        floor = measure_floor(campaign.encodings)
        path = options.output or RECORDS / f"{campaign.name}-{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
        header = Header(
            campaign=campaign.name, seed=seed, environment=environment, systems=campaign.systems, floor=floor
        )
        with RecordWriter(path, header) as writer:
            failures = run_campaign(campaign, seed, Path(work), writer, tell=_tell)
    record = read_record(path)
    print(report(record))
    _tell(f"record: {path}")
    if options.aa:
        outcome = same(record)
        _tell(f"A/A check: {AA_OUTCOMES[outcome]}")
        return int(outcome is not True or failures > 0)
    return int(failures > 0)


def _chosen(options: argparse.Namespace) -> Campaign:
    campaign = CAMPAIGNS[options.campaign]
    if options.aa:
        systems = (options.aa, f"{options.aa}#2")
        campaign = evolve(campaign, name=f"{campaign.name}-aa", systems=systems, runs=max(AA_RUNS, campaign.runs))
    elif options.systems:
        campaign = evolve(campaign, systems=tuple(options.systems.split(",")))
    if options.clients:
        campaign = evolve(campaign, clients=tuple(options.clients.split(",")))
    if options.sizes:
        sizes = [int(float(size) * MB) for size in options.sizes.split(",")]
        loads = dict.fromkeys(evolve(load, size=size) for load in campaign.loads for size in sizes)
        campaign = evolve(campaign, loads=tuple(loads))
    return evolve(campaign, runs=options.runs or campaign.runs, repetitions=options.repetitions or campaign.repetitions)


def _report(options: argparse.Namespace) -> int:
    for path in options.records:
        print(report(read_record(path), options.subject))
    return 0


def _compare(options: argparse.Namespace) -> int:
    print(compare(read_record(options.before), read_record(options.after)))
    return 0


def _plot(options: argparse.Namespace) -> int:
    from perf.plot import plot

    plot(read_record(options.record), options.picture)
    return 0


def _list(options: argparse.Namespace) -> int:
    print(_campaigns())
    return 0


def _campaigns() -> str:
    return "\n".join(f"{one.name:12} {one.purpose} ({one.duration})" for one in CAMPAIGNS.values())


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
    run.add_argument("--systems", help=f"labels with commas, of {', '.join(ALL_SYSTEMS)} (tahoe needs GRID_TAHOE)")
    run.add_argument("--clients", help="warm,cli")
    run.add_argument("--sizes", help="of the files, MB, with commas")
    run.add_argument("--runs", type=int, help="fresh grids this many times")
    run.add_argument("--repetitions", type=int, help="of each cell in a run")
    run.add_argument("--seed", type=int, help="of the order; from the clock if not given")
    run.add_argument("--aa", metavar="SYSTEM", help="the system against itself, which must show no difference")
    run.add_argument("--directory", type=Path, help="where the grids keep their data")
    run.add_argument("--output", type=Path, help="the record's file; below perf/records if not given")
    shown = commands.add_parser("report", help="what records say, in Markdown")
    shown.set_defaults(action=_report)
    shown.add_argument("--subject", help="the system that the others are compared with; the first if not given")
    shown.add_argument("records", type=Path, nargs="+")
    compared = commands.add_parser("compare", help="one record against another")
    compared.set_defaults(action=_compare)
    compared.add_argument("before", type=Path)
    compared.add_argument("after", type=Path)
    drawn = commands.add_parser("plot", help="a picture of a record (needs matplotlib)")
    drawn.set_defaults(action=_plot)
    drawn.add_argument("record", type=Path)
    drawn.add_argument("picture", type=Path)
    commands.add_parser("list", help="the campaigns").set_defaults(action=_list)
    return parser


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
