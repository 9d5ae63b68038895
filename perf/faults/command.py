"""`python -m perf faults`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from attrs import asdict

from perf.faults.faults import ALL_OPERATIONS, Outcome, group_cases, judge, plan_cases, table
from perf.faults.faulty_grid import FaultyGrid
from perf.network.owners import own_directory
from perf.processes.installation import OWN, install_baseline, resolve
from perf.sampling.environment import capture, expect_own_tree
from perf.sampling.freezer import clean_up

RECORDS = Path(__file__).resolve().parent.parent / "records"


def add_faults(commands: Any) -> None:  # noqa: ANN401 - argparse keeps the type of its subparsers to itself
    """Add the command to the harness."""
    command = commands.add_parser("faults", help="what silent and missing servers cost each operation")
    command.set_defaults(action=_faults)
    command.add_argument("--transports", default="foolscap,http", help="with commas")
    command.add_argument("--operations", default=",".join(ALL_OPERATIONS), help="with commas")
    command.add_argument("--repetitions", type=int, default=5, help="of each case; the first may learn")
    command.add_argument("--no-kinds", action="store_true", help="no servers that are silent on one kind of message")
    command.add_argument("--no-commands", action="store_true", help="only a running gateway, no command by itself")
    command.add_argument("--baseline", metavar="COMMIT", help="measure that commit, to compare another record with")
    command.add_argument("--directory", type=Path, help="where the grids keep their data")
    command.add_argument("--output", type=Path, help="the record's file; below perf/records if not given")


def _faults(options: argparse.Namespace) -> int:
    """Return 0 if every case is within its bound, 1 otherwise."""
    expect_own_tree()
    transports, operations = options.transports.split(","), options.operations.split(",")
    cases = plan_cases(transports, kinds=not options.no_kinds, cold=not options.no_commands)
    cases = [case for case in cases if case.operation in operations]
    installation = install_baseline(options.baseline) if options.baseline else OWN
    path = options.output or RECORDS / f"faults-{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
    outcomes: list[Outcome] = []
    tell = partial(print, file=sys.stderr, flush=True)
    clean_up(options.directory, tell)
    with own_directory("faults", options.directory) as work, path.open("x") as record:
        environment = capture(Path(work)) | ({"commit": resolve(options.baseline)} if options.baseline else {})
        record.write(json.dumps({"faults": 1, "environment": environment, "durability": "full"}) + "\n")
        for transport in transports:
            with FaultyGrid(Path(work) / transport, transport, installation) as grid:
                groups = group_cases(case for case in cases if case.transport == transport)
                for outcome in (outcome for group in groups for outcome in grid.measure(group, options.repetitions)):
                    case = outcome.case
                    outcomes.append(outcome)
                    record.write(json.dumps(asdict(outcomes[-1])) + "\n")
                    record.flush()
                    shown = " ".join(f"{seconds:.2f}" for seconds in outcomes[-1].seconds)
                    what = f"{transport}: {case.operation}{', command' if case.cold else ''}, {case.fault}"
                    tell(f"{what}: {shown}")
    verdicts = judge(outcomes)
    print(table(verdicts))
    tell(f"record: {path}")
    return int(not all(verdict.holds for verdict in verdicts))
