"""`python -m perf run` and `resume`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from attrs import asdict, evolve

from perf.campaigns.campaign import MB, Campaign, Encoding, Load, campaign_from
from perf.campaigns.campaign_file import check_chosen as check_campaign
from perf.campaigns.files import load, load_campaign, names
from perf.campaigns.labels import BASES, OPTIONS, PEERS, parse_label, with_base, with_baselines
from perf.campaigns.smoke import smoke
from perf.campaigns.toml_file import parse_changes
from perf.campaigns.workload import Workload, workload_from
from perf.campaigns.workload import check_chosen as check_workload
from perf.network.owners import own_directory
from perf.network.site import Site
from perf.processes.existing import ExistingGrid
from perf.processes.installation import install_baseline, resolve
from perf.records.likeness import differences
from perf.records.record import WHOLE, Header, Record, RecordError, RecordWriter, Resumed, read_record
from perf.reports.markdown import found_section
from perf.reports.report import AA_RUNS, report, same, slower
from perf.reports.target_rows import target_tables
from perf.runs.runner import Options, run_campaign
from perf.sampling.environment import capture, expect_own_tree, measure_floor
from perf.sampling.freezer import clean_up, make_freezer
from perf.systems.peers import make_system
from perf.workloads.rows import Begun
from perf.workloads.running import capabilities, prepared, run_workload

RECORDS = Path(__file__).resolve().parent.parent / "records"

AA_OUTCOMES = {
    True: "passed, no difference between equals",
    False: "a difference between equals: do not believe this machine now",
    None: f"too few runs to tell, take {AA_RUNS} or more",
}

_LABELS_HELP = (
    f"with commas, of {', '.join([*BASES, *PEERS])} (tahoe needs GRID_TAHOE), Grids each with "
    f"{', '.join(f'+{o}' for o in OPTIONS)}; grid@http:COMMIT is Grid as it was then"
)


_SCHEDULER_HELP = (
    "tls://HOST:PORT of a dask.distributed scheduler: the grids run on its workers with --resources server=1, and the "
    "clients on those with client=1. Without one the topology `machines` is a cluster of its own on this machine"
)


class InterruptedRunError(Exception):
    """Ctrl-C; the message says how to resume."""


def add_run(commands: Any) -> None:  # noqa: ANN401 - argparse keeps the type of its subparsers to itself
    """Add both commands to the harness."""
    run = commands.add_parser("run", help="run a campaign and keep its raw samples")
    run.set_defaults(action=_run)
    run.add_argument("campaign", help=f"a .toml file, or one of {', '.join(names())}")
    run.add_argument("--smoke", action="store_true", help="in its smallest form, to see that it works: under a minute")
    run.add_argument("--systems", help=_LABELS_HELP)
    run.add_argument("--clients", help="warm,gateway,cli")
    run.add_argument("--sizes", help="of the files, MB, with commas")
    run.add_argument("--seconds", type=float, help="of idleness")
    run.add_argument(
        "--set",
        action="append",
        metavar="KEY=VALUE",
        help="another value for a key of the file, as TOML: --set 'sets=[\"1g_1\"]'",
    )
    run.add_argument("--runs", type=int, help="fresh grids this many times")
    run.add_argument("--repetitions", type=int, help="of each cell in a run")
    run.add_argument("--seed", type=int, help="of the order; from the clock if not given")
    run.add_argument("--no-freeze", action="store_true", help="let the systems that are not measured go on")
    run.add_argument("--aa", metavar="SYSTEM", help="the system against itself, which must show no difference")
    run.add_argument("--baseline", metavar="COMMIT", help="the grids of the campaign beside those of an older commit")
    run.add_argument(
        "--node",
        type=Path,
        help="the directory of a client of your own grid: measure that, with small files that stay there",
    )
    run.add_argument("--scheduler", help=_SCHEDULER_HELP)
    run.add_argument("--directory", type=Path, help="where the grids keep their data")
    run.add_argument("--output", type=Path, help="the record's file; below perf/records if not given")
    resume = commands.add_parser("resume", help="go on with a campaign that was interrupted")
    resume.set_defaults(action=_resume)
    resume.add_argument("record", type=Path)
    resume.add_argument("--force", action="store_true", help="although the environment is another now")
    resume.add_argument("--scheduler", help=_SCHEDULER_HELP)
    resume.add_argument("--directory", type=Path, help="where the grids keep their data")


def _run(options: argparse.Namespace) -> int:
    expect_own_tree()
    campaign = _chosen(options)
    if options.output and options.output.exists():
        raise RecordError(f"{options.output} exists already: name another file, or continue it with `perf resume`")
    tell(f"{campaign.name}: {campaign.purpose}; about {campaign.duration} as it is usually run")
    seed = next(one for one in (options.seed, campaign.seed, time.time_ns() % 10**9) if one is not None)
    clean_up(options.directory, tell)
    with ExitStack() as stack:
        work = Path(stack.enter_context(own_directory("run", options.directory)))
        folder = Path(stack.enter_context(own_directory("record"))) if options.smoke else RECORDS
        path = options.output or folder / f"{campaign.name}-{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
        header = _header(campaign, seed, work, options)
        kept = f"what was measured is kept; go on with: python -m perf resume {path}"
        if options.smoke and not options.output:
            kept = "this smoke test kept nothing, as it had no --output: run it again"
        failures = _carry_out(header, path, work, None, options.scheduler or "", kept)
        record = read_record(path)
    if not record.samples and not record.gaps:
        raise RecordError(f"{campaign.name} did nothing: none of its systems does any of its work")
    if options.smoke:
        tell(f"{campaign.name}: {len(record.samples)} operations, {failures} failed, {len(record.gaps)} gaps")
        if not options.output:
            tell("Nothing was kept; --output RECORD keeps a smoke test.")
        return int(failures > 0 or not record.samples)
    return _conclude(record, path, campaign, failures, options.baseline)


def _header(campaign: Campaign | Workload, seed: int, work: Path, options: argparse.Namespace) -> Header:
    """The header of the record: everything required to resume it."""
    if isinstance(campaign, Workload):
        campaign = prepared(campaign, seed)
        added: dict[str, Any] = {"capabilities": capabilities(campaign)}
        floor = {}
    else:
        added = {"baselines": _set_up(campaign.systems), "capabilities": _capabilities(campaign)}
        floor = {} if options.smoke else measure_floor(campaign.encodings)
    return Header(
        campaign=campaign.name,
        seed=seed,
        environment={**capture(work), **added},
        systems=campaign.systems,
        floor=floor,
        plan=asdict(campaign),
    )


def _resume(options: argparse.Namespace) -> int:
    expect_own_tree()
    record = read_record(options.record)
    if not record.header.plan:
        raise RecordError(f"{options.record}: this record does not say its plan, and cannot be continued: run it anew")
    campaign = _planned(record.header)
    clean_up(options.directory, tell)
    with own_directory("run", options.directory) as work:
        now = capture(Path(work))
        if isinstance(campaign, Campaign):
            now["baselines"] = _set_up(campaign.systems)
        changed = differences(record.header.environment, now, software=True)
        if changed and not options.force:
            what = "; ".join(f"{name} was {old}, is {new}" for name, (old, new) in changed.items())
            raise RecordError(f"{options.record}: the environment is another now: {what}. --force goes on all the same")
        with RecordWriter(options.record, None) as writer:
            writer.write_resumed(Resumed(environment=now))
        record = read_record(options.record)
        kept = f"what was measured is kept; go on with: python -m perf resume {options.record}"
        failures = _carry_out(record.header, options.record, Path(work), record, options.scheduler or "", kept)
    return _conclude(read_record(options.record), options.record, campaign, failures, "")


def _planned(header: Header) -> Campaign | Workload:
    """The campaign of a record, as it was chosen."""
    return workload_from(header.plan) if "driver" in header.plan else campaign_from(header.plan)


def _carry_out(header: Header, path: Path, work: Path, begun: Record | None, scheduler: str, kept: str) -> int:
    """Run what is not recorded yet; return the number of failed operations. kept: what to say after an interruption."""
    campaign = _planned(header)
    done = begun.done_keys() if begun is not None else set()
    orders = begun.next_orders() if begun is not None else {}
    with ExitStack() as stack:
        writer = stack.enter_context(RecordWriter(path, header if begun is None else None))
        try:
            if isinstance(campaign, Workload):
                after = Begun.of(begun) if begun is not None else None
                failures = run_workload(campaign, work, writer, tell, header.environment, after)
                writer.write_end(WHOLE)
                return failures
            freezer = make_freezer() if campaign.freeze else None
            if freezer is not None:
                stack.callback(freezer.close)
            options = Options(
                tell=tell,
                environment=header.environment,
                done=done,
                orders=orders,
                begun=begun.begun_places() if begun is not None else (),
                left=begun.left if begun is not None else (),
                freezer=freezer,
                scheduler=scheduler,
            )
            return run_campaign(campaign, header.seed, work, writer, options)
        except KeyboardInterrupt:
            raise InterruptedRunError(f"interrupted: all nodes have ended; {kept}") from None


def _conclude(record: Record, path: Path, campaign: Campaign | Workload, failures: int, baseline: str | None) -> int:
    if targets := target_tables([record], all_rows=False):
        print(targets)
    print(report(record))
    print(found_section(record))
    print(resumed_section(record), end="")
    tell(f"record: {path}")
    if isinstance(campaign, Campaign) and campaign.is_aa:
        outcome = same(record)
        tell(f"A/A check: {AA_OUTCOMES[outcome]}")
        return int(outcome is not True or failures > 0)
    if baseline:
        worse = slower(record)
        tell(f"Against {baseline}: {_against(worse)}")
        return int(bool(worse) or failures > 0)
    return int(failures > 0)


def resumed_section(record: Record) -> str:
    """Which samples were taken in another environment than the record's header says; empty if none were."""
    lines = []
    for one in record.resumed:
        changed = differences(record.header.environment, one.environment, software=True)
        if changed and one.before < len(record.samples):
            what = "; ".join(f"{name} was {old}, and then {new}" for name, (old, new) in changed.items())
            lines.append(f"- All after sample {one.before} of {len(record.samples)}: {what}.")
    return "\n".join(["## Continued in another environment", "", *lines, ""]) if lines else ""


def _set_up(systems: Sequence[str]) -> dict[str, str]:
    """Install the commits that the systems name, before anything is measured; return their full hashes."""
    commits = {label.commit for label in map(parse_label, systems) if label.commit}
    for commit in sorted(commits):
        tell(f"installing commit {commit}, unless it is installed")
        install_baseline(commit)
    return {commit: resolve(commit) for commit in sorted(commits)}


def _capabilities(campaign: Campaign) -> dict[str, dict[str, Any]]:
    """What each available system does with bytes."""
    found = {}
    for label in campaign.systems:
        try:
            found[label] = asdict(make_system(label).capabilities(campaign.encodings[0]))
        except (ValueError, RuntimeError, OSError) as error:
            tell(f"{label}: what it does with bytes is not known: {error}")
    return found


def _against(worse: list[str] | None) -> str:
    if worse is None:
        return f"too few runs to tell, take {AA_RUNS} or more"
    return f"slower at {'; '.join(worse)}" if worse else "nothing is slower"


def _chosen(options: argparse.Namespace) -> Campaign | Workload:
    changes = parse_changes(options.set or [])
    campaign = load(options.campaign, smoke=options.smoke, changes=changes)
    if isinstance(campaign, Workload):
        return _chosen_workload(campaign, options)
    campaign = load_campaign(options.campaign, changes)
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
    if options.node or options.scheduler:
        campaign = _placed(campaign, options)
    if options.clients:
        campaign = evolve(campaign, clients=tuple(options.clients.split(",")))
    if options.sizes is not None:
        sizes = _sizes(options.sizes)
        campaign = _with_loads(campaign, lambda load: [_sized(load, size) for size in sizes])
    if options.seconds is not None:
        campaign = _with_loads(campaign, lambda load: [evolve(load, seconds=load.seconds and options.seconds)])
    if options.smoke:
        check_campaign(campaign)
        campaign = smoke(campaign)
    campaign = evolve(
        campaign,
        runs=campaign.runs if options.runs is None else options.runs,
        repetitions=campaign.repetitions if options.repetitions is None else options.repetitions,
        freeze=campaign.freeze and not options.no_freeze,
    )
    check_campaign(campaign)
    return _as_guest(campaign)


def _placed(campaign: Campaign, options: argparse.Namespace) -> Campaign:
    """The campaign moved to the grid of --node or the machines of --scheduler; ValueError for both."""
    if options.node and options.scheduler:
        raise ValueError("--node is a grid that runs already, and --scheduler starts others: give one of the two")
    if options.scheduler:
        site = Site(topology="machines")
    else:
        site = Site(topology="existing", node=str(options.node.absolute()))
        systems = [system for system in campaign.systems if parse_label(system).is_guest] or ["grid"]
        # The node determines the transport, so Grids that differ only in it are the same system, and have its name.
        base = "grid@foolscap" if ExistingGrid(options.node).settings.transport == "foolscap" else "grid@http"
        alike = {parse_label(system).options + (parse_label(system).codec,): system for system in reversed(systems)}
        campaign = evolve(campaign, systems=tuple(with_base(one, base) for one in reversed(alike.values())))
    loads = tuple(dict.fromkeys(evolve(load, topology="") for load in campaign.loads))
    return evolve(campaign, sites=(site,), loads=loads)


def _as_guest(campaign: Campaign) -> Campaign:
    """The campaign with the existing grid's encoding, if it is measured on one."""
    node = next((site.node for site in campaign.sites if site.node), "")
    if not node:
        return campaign
    own = ExistingGrid(Path(node)).settings
    return evolve(campaign, encodings=(Encoding(needed=own.needed, happy=own.happy, total=own.total),))


def _chosen_workload(workload: Workload, options: argparse.Namespace) -> Workload:
    """The workload with the options' changes; ValueError for options that do not apply to a driver."""
    for name in ("clients", "sizes", "seconds", "repetitions", "aa", "baseline", "node", "scheduler"):
        if getattr(options, name) not in (None, False):
            raise ValueError(
                f"--{name} says nothing to the driver {workload.driver}: change a copy of its file instead"
            )
    systems = options.systems.split(",") if options.systems else workload.systems
    workload = evolve(workload, systems=systems, runs=workload.runs if options.runs is None else options.runs)
    check_workload(workload)
    return workload


def _with_loads(campaign: Campaign, change: Callable[[Load], Sequence[Load]]) -> Campaign:
    """Replace each load by others, without duplicates."""
    return evolve(campaign, loads=tuple(dict.fromkeys(new for load in campaign.loads for new in change(load))))


def _sizes(text: str) -> list[int]:
    """The bytes of each of several sizes in MB; ValueError."""
    try:
        return [int(float(size) * MB) for size in text.split(",")]
    except (ValueError, OverflowError):
        raise ValueError(f"--sizes cannot be {text!r}: give numbers of MB, with commas, as in 0.1,10") from None


def _sized(load: Load, size: int) -> Load:
    """The load with files of this size, if it has files."""
    return evolve(load, size=size, length=min(load.length, size)) if load.size else load


def tell(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)
