"""Runs a campaign: fresh grids of every system side by side, cells interleaved, each sample on disk at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from attrs import evolve

from perf.campaigns import Campaign, Cell, plan_cells
from perf.records import RecordWriter, Sample
from perf.scenarios import put_then_get
from perf.systems.grid import GridSystem
from perf.systems.processes import Encoding, System
from perf.systems.tahoe import TahoeSystem

SYSTEMS: Mapping[str, Callable[[str], System]] = {"grid": GridSystem, "tahoe": TahoeSystem}


def make_system(label: str) -> System:
    """The system that a label names; ValueError if there is none."""
    name = label.partition("#")[0]
    if name not in SYSTEMS:
        raise ValueError(f"no system {name!r}; there are {', '.join(SYSTEMS)}")
    return SYSTEMS[name](label)


def run_campaign(
    campaign: Campaign,
    seed: int,
    directory: Path,
    writer: RecordWriter,
    *,
    tell: Callable[[str], None],
    make: Callable[[str], System] = make_system,
) -> int:
    """Do all runs; how many operations failed.

    directory: exists; grids and files are made below it and removed. tell: hears one line per sample.
    """
    failures = 0
    for run in range(campaign.runs):
        with ExitStack() as stack:
            systems = {label: make(label) for label in campaign.systems}
            encoding = Encoding(
                needed=campaign.needed, happy=campaign.happy, total=campaign.total, servers=campaign.servers
            )
            for index, system in enumerate(systems.values()):
                stack.callback(system.stop)
                system.start(directory / f"run{run}-{index}", encoding)
            failures += _run_cells(campaign, plan_cells(campaign, seed, run), run, systems, directory, writer, tell)
    return failures


def _run_cells(
    campaign: Campaign,
    cells: Sequence[Cell],
    run: int,
    systems: Mapping[str, System],
    directory: Path,
    writer: RecordWriter,
    tell: Callable[[str], None],
) -> int:
    files = directory / f"run{run}-files"
    files.mkdir()
    order = failures = 0
    for cell in cells:
        for sample in put_then_get(systems[cell.system], cell, campaign, files):
            writer.write(evolve(sample, run=run, order=order))
            tell(describe_sample(sample, f"run {run + 1}/{campaign.runs}"))
            order += 1
            failures += sample.seconds is None
    files.rmdir()
    return failures


def describe_sample(sample: Sample, where: str) -> str:
    """One line for whoever watches."""
    what = f"{where} {sample.system} {sample.client} {sample.scenario} {sample.size / 1e6:g} MB"
    if sample.seconds is None:
        return f"{what}: FAILED: {sample.error}"
    rate = sample.size / 1e6 / sample.seconds
    return f"{what}: {sample.seconds:.3f} s, {rate:.1f} MB/s{' (warm-up)' if sample.warmup else ''}"
