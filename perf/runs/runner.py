"""Runs a campaign: fresh grids of every system side by side, cells interleaved, and each sample saved immediately.

Only the measured system runs; the others are frozen meanwhile. Work recorded before an interruption is not repeated.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from attrs import asdict, evolve, field, frozen

from perf.campaigns.campaign import Campaign, Cell, plan_cells
from perf.network.contract import NetworkError, Placement, Topology
from perf.network.site import LOOPBACK, Site
from perf.network.topologies import make_topology
from perf.network.workers import connected
from perf.processes.existing import ExistingGrid
from perf.records.beside import Gap, Left, SiteFound
from perf.records.likeness import key_of
from perf.records.record import WHOLE, RecordWriter, Sample
from perf.records.work import work_of
from perf.runs.alone import Alone
from perf.runs.machines import MachineStage, start_grids
from perf.runs.progress import Progress
from perf.runs.scenarios import Stage
from perf.sampling.freezer import Freezer
from perf.sampling.watch import OutlierWatch
from perf.systems.contract import System
from perf.systems.existing import ExistingSystem
from perf.systems.peers import make_system
from perf.systems.processes import ProcessSystem


@frozen(kw_only=True)
class Options:
    """How to run. environment: part of the cells' keys. done: keys of recorded cells. orders: next order of each run.

    begun: runs and sites that have samples. left: what earlier runs put on a user's grid. freezer: None to freeze nothing.
    scheduler: of the topology `machines`; empty for a private cluster. make, topology, clock: factories of systems and
    topologies, and seconds, for tests.
    """

    tell: Callable[[str], None]
    environment: Mapping[str, Any] = field(factory=dict)
    done: Collection[str] = ()
    orders: Mapping[int, int] = field(factory=dict)
    begun: Collection[tuple[int, str]] = ()
    left: Sequence[Left] = ()
    freezer: Freezer | None = None
    scheduler: str = ""
    make: Callable[[str], System] = make_system
    topology: Callable[[Site, int], Topology] = make_topology
    clock: Callable[[], float] = time.monotonic


def run_campaign(campaign: Campaign, seed: int, directory: Path, writer: RecordWriter, options: Options) -> int:
    """Do all runs; return the number of failed operations.

    directory: exists; grids and files are made below it and removed.
    """
    return _Campaign(campaign, seed, directory, writer, options).run()


class _Campaign:
    """All runs of one campaign."""

    def __init__(self, campaign: Campaign, seed: int, directory: Path, writer: RecordWriter, options: Options) -> None:
        self._campaign = campaign
        self._directory = directory
        self._writer = writer
        self._options = options
        self._watch = OutlierWatch(writer, options.tell)
        self._orders = Counter(options.orders)
        self._began = options.clock()
        self._left = {
            (run, site): _left_of(_keyed(plan_cells(campaign, seed, run, site), run, options.environment), options.done)
            for run in range(campaign.runs)
            for site in campaign.sites
        }
        self._guests: dict[str, ExistingGrid] = {}
        self._progress = Progress(sum(len(cells) for cells in self._left.values()))

    def run(self) -> int:
        """Return the number of failed operations."""
        failures = 0
        for run, site in list(self._left):
            if self._left[run, site] and not self._is_over():
                failures += self._run_at(run, site)
        if any(self._left.values()):
            self._cut_off()
        else:
            self._writer.write_end(WHOLE)
        return failures

    def _is_over(self) -> bool:
        budget = self._campaign.budget
        return budget is not None and self._options.clock() - self._began > budget * 60

    def _cut_off(self) -> None:
        """Record what remains when the time is used up."""
        cells = sum(len(cells) for cells in self._left.values())
        run = next(run for (run, _), cells in self._left.items() if cells)
        reason = f"the budget of {self._campaign.budget:g} minutes was used up; `perf resume` goes on"
        self._options.tell(f"{cells} cells from run {run + 1} on are not measured: {reason}")
        self._writer.write_cut(Gap(system="all systems", work=f"{cells} cells from run {run + 1} on", reason=reason))

    def _run_at(self, run: int, site: Site) -> int:
        """Do one run at one site, or what is left of it."""
        begin = self._begin_on_machines if site.topology == "machines" else self._begin_here
        number = self._number(run, site)
        with ExitStack() as stack:
            try:
                stage, find = begin(run, site, stack)
            except NetworkError as error:
                self._leave_out(run, site, self._campaign.systems, f"{error}")
                return 0
            if all(cell.warmup for cell, _ in self._left[run, site]):
                self._left[run, site] = []
                return 0
            found = find()
            goes_on = {"continues run": run + 1} if number != run else {}
            self._writer.write_site(SiteFound(run=number, site=str(site), found={**found, **goes_on}))
            failures = self._play((run, site), number, stage)
            self._find_again(number, site, found, find)
            return failures

    def _number(self, run: int, site: Site) -> int:
        """The run's number in the record. What is left of an interrupted run is a run of its own: fresh grids at another time.

        Systems are compared within runs only.
        """
        if (run, "" if site == LOOPBACK else str(site)) not in self._options.begun:
            return run
        number = max([self._campaign.runs - 1, *self._orders]) + 1
        self._options.tell(
            f"the rest of run {run + 1} at {site} has fresh grids, and is run {number + 1} in the record"
        )
        return number

    def _find_again(
        self, number: int, site: Site, before: Mapping[str, Any], find: Callable[[], Mapping[str, Any]]
    ) -> None:
        """Record the site's counters at the end of a run: how often limits throttled, what a line dropped or delayed."""
        try:
            after = find()
        except (NetworkError, OSError) as error:
            after = {"error": str(error)}
        if after != before:
            self._writer.write_site(SiteFound(run=number, site=str(site), found={"afterwards": after}))

    def _begin_here(self, run: int, site: Site, stack: ExitStack) -> tuple[Stage, Callable[[], Mapping[str, Any]]]:
        """All systems on hosts of this machine, and what finds the measurements of the network between them."""
        topology = stack.enter_context(self._options.topology(site, self._campaign.servers))
        systems = self._start_systems(run, site, topology.placement, stack)
        files = self._directory / f"run{run}-files"
        files.mkdir()
        stack.callback(files.rmdir)
        media = {host.directory for host in topology.placement.servers if host.directory is not None}
        stage = Stage(systems, self._alone(systems), files, media)
        stack.callback(stage.close)
        return stage, topology.found

    def _begin_on_machines(
        self, run: int, site: Site, stack: ExitStack
    ) -> tuple[MachineStage, Callable[[], Mapping[str, Any]]]:
        """All systems on the scheduler's machines, and what finds the measurements of those."""
        systems: dict[str, ProcessSystem] = {}
        for label in self._campaign.systems:
            system = self._options.make(label)
            if isinstance(system, ProcessSystem):
                systems[label] = system
            else:
                self._leave_out(run, site, [label], "only grids run on several machines")
        cluster = stack.enter_context(connected(self._options.scheduler))
        stage, machines = start_grids(cluster, systems, self._campaign.servers, self._campaign.encodings)
        stack.callback(stage.close)
        self._leave_out_refused(run, site, systems)
        return stage, machines.found

    def _start_systems(self, run: int, site: Site, placement: Placement, stack: ExitStack) -> dict[str, System]:
        """Start the systems that this machine can run; the others become gaps."""
        systems: dict[str, System] = {}
        for index, label in enumerate(self._campaign.systems):
            try:
                system = ExistingSystem(label, self._guest(site)) if site.node else self._options.make(label)
            except ValueError as error:
                self._leave_out(run, site, [label], str(error))
                continue
            stack.callback(system.stop)
            root = self._directory / f"run{run}-{self._campaign.sites.index(site)}-{index}"
            _start(system, root, self._campaign, placement, self._options.tell)
            systems[label] = system
        self._leave_out_refused(run, site, systems)
        return systems

    def _guest(self, site: Site) -> ExistingGrid:
        """The grid of a node directory, shared by all runs, which counts everything they and earlier ones left there."""
        if site.node not in self._guests:

            def keep(storage_index: str, size: int) -> None:
                self._writer.write_left(Left(storage_index=storage_index, size=size))

            self._guests[site.node] = ExistingGrid(
                Path(site.node), keep=keep, left=[(one.storage_index, one.size) for one in self._options.left]
            )
        return self._guests[site.node]

    def _leave_out_refused(self, run: int, site: Site, systems: Mapping[str, System]) -> None:
        self._left[run, site] = [
            (cell, key) for cell, key in self._left[run, site] if not self._is_refused(systems, cell)
        ]

    def _alone(self, systems: Mapping[str, System]) -> dict[str, System]:
        """Each system, measured with all others frozen."""
        return {
            label: Alone(system, [other for other in systems.values() if other is not system], self._options.freezer)
            for label, system in systems.items()
        }

    def _is_refused(self, systems: Mapping[str, System], cell: Cell) -> bool:
        reason = systems[cell.system].refuses(cell.load, cell.client) if cell.system in systems else ""
        if reason:
            work = f"{cell.load.scenario}, {cell.load.format}, {cell.client}"
            self._writer.write_gap(Gap(system=cell.system, work=work, reason=reason))
        return bool(reason)

    def _leave_out(self, run: int, site: Site, labels: Sequence[str], reason: str) -> None:
        """Record these systems as gaps at this site."""
        for label in labels:
            self._options.tell(f"{label} is left out at {site}: {reason}")
            self._writer.write_gap(Gap(system=label, work="" if site == LOOPBACK else f"at {site}", reason=reason))
        self._left[run, site] = [(cell, key) for cell, key in self._left[run, site] if cell.system not in labels]

    def _play(self, place: tuple[int, Site], run: int, stage: Stage | MachineStage) -> int:
        """Do the cells of a place until the time is used up. run: the number in the record."""
        failures = 0
        left = self._left[place]
        while left and not self._is_over():
            cell, key = left[0]
            started = time.perf_counter()
            for sample in stage.play(cell):
                kept = evolve(sample, run=run, order=self._orders[run], key=key)
                self._writer.write(kept)
                self._options.tell(f"[{self._progress.describe(self._kinds())}] run {run + 1} {describe_sample(kept)}")
                self._watch.look(kept)
                self._orders[run] += 1
                failures += sample.seconds is None
            del left[0]
            self._progress.add(_kind(cell), time.perf_counter() - started)
        self._watch.end()
        return failures

    def _kinds(self) -> list[Hashable]:
        """The kinds of all remaining cells."""
        return [_kind(cell) for cells in self._left.values() for cell, _ in cells]


def _left_of(cells: Sequence[tuple[Cell, str]], done: Collection[str]) -> list[tuple[Cell, str]]:
    """The remaining work: fresh grids need all their warm-ups if anything is still to be measured on them."""
    if all(cell.warmup or key in done for cell, key in cells):
        return []
    return [(cell, key) for cell, key in cells if cell.warmup or key not in done]


def _kind(cell: Cell) -> Hashable:
    return cell.system, cell.client, cell.load, cell.encoding, cell.site


def _keyed(cells: Sequence[Cell], run: int, environment: Mapping[str, Any]) -> list[tuple[Cell, str]]:
    """The cells with their keys: a number distinguishes equal cells of one run."""
    seen: Counter[Hashable] = Counter()
    keyed = []
    for cell in cells:
        kind = (_kind(cell), cell.warmup)
        seen[kind] += 1
        keyed.append((cell, key_of({**asdict(cell), "place": 0, "run": run, "number": seen[kind]}, environment)))
    return keyed


def _start(system: System, root: Path, campaign: Campaign, placement: Placement, tell: Callable[[str], None]) -> None:
    """Start the system, with a second attempt, since another process may take a free port meanwhile."""
    try:
        system.start(root, campaign.servers, campaign.encodings, placement)
    except (RuntimeError, TimeoutError) as error:
        tell(f"{system.label} did not start, and is started anew: {error}")
        system.stop()
        system.start(root.with_name(f"{root.name}-again"), campaign.servers, campaign.encodings, placement)


def describe_sample(sample: Sample) -> str:
    """One line of progress."""
    work = work_of(sample)
    if sample.seconds is None:
        return f"{sample.system} {work}: FAILED: {sample.error}"
    shown = f"{work.measure(sample.seconds):.4g} {work.unit}"
    return f"{sample.system} {work}: {sample.seconds:.3f} s, {shown}{' (warm-up)' if sample.warmup else ''}"
