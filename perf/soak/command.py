"""`python -m perf soak`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from attrs import asdict

from perf.network.owners import own_directory
from perf.sampling.environment import capture, expect_own_tree
from perf.sampling.freezer import clean_up
from perf.soak.soak import SoakSettings, soak

RECORDS = Path(__file__).resolve().parent.parent / "records"


def add_soak(commands: Any) -> None:  # noqa: ANN401 - argparse keeps the type of its subparsers to itself
    """Add the command to the harness."""
    command = commands.add_parser("soak", help="use a real grid at random for a long time; does anything grow or fail?")
    command.set_defaults(action=_soak)
    command.add_argument("--minutes", type=float, default=SoakSettings().minutes)
    command.add_argument("--load", type=float, default=SoakSettings().load, help="cores to use, client and servers")
    command.add_argument("--seed", type=int, help="of what is done; from the clock if not given")
    command.add_argument("--batches", type=int, help="run this many rounds of operations instead of minutes")
    command.add_argument("--largest", type=int, default=SoakSettings().largest, help="bytes of the largest file")
    command.add_argument(
        "--hostile", type=int, default=0, help="connections that say too little or never read, at once"
    )
    command.add_argument("--directory", type=Path, help="where the grid keeps its data")
    command.add_argument("--output", type=Path, help="the record's file; below perf/records if not given")


def _soak(options: argparse.Namespace) -> int:
    """Return 0 if nothing was wrong, 1 otherwise."""
    expect_own_tree()
    settings = SoakSettings(
        minutes=options.minutes,
        load=options.load,
        seed=options.seed if options.seed is not None else time.time_ns() % 10**9,
        batches=options.batches,
        largest=options.largest,
        hostile=options.hostile,
    )
    path = options.output or RECORDS / f"soak-{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
    tell = partial(print, file=sys.stderr, flush=True)
    clean_up(options.directory, tell)
    with own_directory("soak", options.directory) as work, path.open("x") as record:
        record.write(json.dumps({"soak": 1, "environment": capture(Path(work)), **asdict(settings)}) + "\n")
        outcome = soak(settings, Path(work), record, tell)
        record.write(json.dumps({"what": "outcome", **asdict(outcome)}) + "\n")
    print(outcome)
    tell(f"record: {path}")
    return int(bool(outcome.defects))
