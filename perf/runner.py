"""Runs a campaign: fresh grids of every system side by side, cells interleaved, each sample on disk at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from attrs import evolve

from perf.campaigns import Campaign, Cell, plan_cells
from perf.records import RecordWriter, Sample
from perf.scenarios import Stage
from perf.systems.grid import GridSystem
from perf.systems.processes import System
from perf.systems.tahoe import TahoeSystem
from perf.work import work_of

SYSTEMS: Mapping[str, Callable[[str], System]] = {
    "grid@foolscap": GridSystem,
    "grid@http": partial(GridSystem, transport="http"),
    "grid@http-plain": partial(GridSystem, transport="http", plaintext_reads=True),
    "tahoe@foolscap": TahoeSystem,
    "tahoe@http": partial(TahoeSystem, transport="http"),
}

ALIASES = {"grid": "grid@foolscap", "tahoe": "tahoe@foolscap"}


def make_system(label: str) -> System:
    """The system that a label names; ValueError if there is none."""
    name = label.partition("#")[0]
    make = SYSTEMS.get(ALIASES.get(name, name))
    if make is None:
        raise ValueError(f"no system {name!r}; there are {', '.join([*ALIASES, *SYSTEMS])}")
    return make(label)


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
            for index, system in enumerate(systems.values()):
                stack.callback(system.stop)
                system.start(directory / f"run{run}-{index}", campaign.servers, campaign.encodings)
            files = directory / f"run{run}-files"
            files.mkdir()
            stack.callback(files.rmdir)
            stage = Stage(systems, files)
            stack.callback(stage.close)
            told = partial(_tell_where, tell, f"run {run + 1}/{campaign.runs}")
            failures += _run_cells(plan_cells(campaign, seed, run), run, stage, writer, told)
    return failures


def _run_cells(cells: Sequence[Cell], run: int, stage: Stage, writer: RecordWriter, tell: Callable[[str], None]) -> int:
    order = failures = 0
    for cell in cells:
        for sample in stage.play(cell):
            writer.write(evolve(sample, run=run, order=order))
            tell(describe_sample(sample))
            order += 1
            failures += sample.seconds is None
    return failures


def _tell_where(tell: Callable[[str], None], where: str, line: str) -> None:
    tell(f"{where} {line}")


def describe_sample(sample: Sample) -> str:
    """One line for whoever watches."""
    work = work_of(sample)
    if sample.seconds is None:
        return f"{sample.system} {work}: FAILED: {sample.error}"
    shown = f"{work.measure(sample.seconds):.4g} {work.unit}"
    return f"{sample.system} {work}: {sample.seconds:.3f} s, {shown}{' (warm-up)' if sample.warmup else ''}"
