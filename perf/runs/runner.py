"""Runs a campaign: fresh grids of every system side by side, cells interleaved, each sample on disk at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from attrs import evolve

from perf.campaigns.campaign import Campaign, Cell, plan_cells
from perf.campaigns.labels import parse_label
from perf.processes.installation import OWN, install_baseline
from perf.processes.node_directory import Transport
from perf.records.record import RecordWriter, Sample, Timeline
from perf.records.work import work_of
from perf.runs.scenarios import Stage
from perf.sampling.timeline import Outliers
from perf.systems.contract import System
from perf.systems.grid import GridSystem
from perf.systems.tahoe import TahoeSystem


def make_system(text: str) -> System:
    """The system that a label names; ValueError if there is none."""
    label = parse_label(text)
    transport: Transport = "foolscap" if label.base.endswith("@foolscap") else "http"
    if not label.is_grid:
        return TahoeSystem(text, transport)
    return GridSystem(
        text,
        transport,
        plaintext_reads=label.base == "grid@http-plain",
        durability=label.durability,
        codec=label.codec,
        installation=install_baseline(label.commit) if label.commit else OWN,
    )


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
    times: Mapping[Hashable, Sequence[float]] = {}
    for run in range(campaign.runs):
        with ExitStack() as stack:
            systems = {label: make(label) for label in campaign.systems}
            for index, system in enumerate(systems.values()):
                stack.callback(system.stop)
                _start(system, directory / f"run{run}-{index}", campaign, tell)
            files = directory / f"run{run}-files"
            files.mkdir()
            stack.callback(files.rmdir)
            stage = Stage(systems, files)
            stack.callback(stage.close)
            told = partial(_tell_where, tell, f"run {run + 1}/{campaign.runs}")
            outliers = Outliers(times)
            failures += _run_cells(plan_cells(campaign, seed, run), run, stage, writer, outliers, told)
            times = outliers.times
    return failures


def _start(system: System, root: Path, campaign: Campaign, tell: Callable[[str], None]) -> None:
    """Start it; once more if that fails, since a port that was free may be taken by somebody else meanwhile."""
    try:
        system.start(root, campaign.servers, campaign.encodings)
    except (RuntimeError, TimeoutError) as error:
        tell(f"{system.label} did not start, and is started anew: {error}")
        system.stop()
        system.start(root.with_name(f"{root.name}-again"), campaign.servers, campaign.encodings)


def _run_cells(
    cells: Sequence[Cell],
    run: int,
    stage: Stage,
    writer: RecordWriter,
    outliers: Outliers,
    tell: Callable[[str], None],
) -> int:
    order = failures = 0
    for cell in cells:
        for sample in stage.play(cell):
            writer.write(evolve(sample, run=run, order=order))
            tell(describe_sample(sample))
            if sample.seconds is not None and not sample.warmup:
                outliers.add((sample.system, work_of(sample)), (run, order), sample.seconds, sample.timeline)
            order += 1
            failures += sample.seconds is None
    for kept, median in outliers.chosen():
        run, order = kept.place
        writer.write_timeline(Timeline(run=run, order=order, median=median, **kept.timeline))
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
