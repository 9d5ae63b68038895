"""`python -m perf doctor`: what this machine can and cannot measure, and how to get what is missing."""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from perf.network import topologies
from perf.network.contract import Ability
from perf.peers import programs
from perf.sampling.freezer import make_freezer
from perf.sampling.sampler import PRESSURES, stalls

BUSY = 0.5
"""Load per core above which a machine is not idle."""


def add_doctor(commands: Any) -> None:  # noqa: ANN401 - argparse keeps the type of its subparsers to itself
    """Add the command to the harness."""
    commands.add_parser("doctor", help="what this machine can measure, and how to get the rest").set_defaults(
        action=_doctor
    )


def _doctor(options: argparse.Namespace) -> int:
    """Always return 0: a missing ability is not a failure."""
    for title, found in (
        ("Measuring", own_abilities()),
        ("Topologies", topologies.abilities()),
        ("Peers", programs.abilities()),
    ):
        print("\n".join([title, *describe(found), ""]))
    return 0


def describe(abilities: Iterable[Ability]) -> list[str]:
    """A line for each ability, followed by how to get it if it is missing."""
    lines = []
    for one in abilities:
        lines.append(f"  {'yes' if one.available else 'no ':3}  {one.name}: {one.found}")
        if not one.available and one.remedy:
            lines.append(f"         {one.remedy}")
    return lines


def own_abilities() -> Sequence[Ability]:
    """The abilities of the harness itself."""
    freezer = make_freezer()
    freezer.close()
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    drop = Path("/proc/sys/vm/drop_caches")
    return [
        Ability(name="only the measured system runs", available=True, found=f"by {freezer.name}"),
        Ability(
            name="an idle machine",
            available=load / cores < BUSY,
            found=f"load {load:.1f} on {cores} cores",
            remedy="end other work: every system is slowed alike, but intervals get wide",
        ),
        Ability(
            name="pressure",
            available=set(stalls()) == set(PRESSURES),
            found="/proc/pressure",
            remedy="boot Linux 4.20 or newer with psi=1",
        ),
        Ability(
            name="dropping the page cache",
            available=os.access(drop, os.W_OK),
            found=f"{drop}",
            remedy="run as root; without it, cold means that the files of the run are evicted one by one",
        ),
        *(_package(name, what) for name, what in (("matplotlib", "pictures"), ("pyarrow", "Parquet"))),
    ]


def _package(name: str, what: str) -> Ability:
    return Ability(
        name=what,
        available=importlib.util.find_spec(name) is not None,
        found=name,
        remedy="pip install grid-storage[perf]",
    )
