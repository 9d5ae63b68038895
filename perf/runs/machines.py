"""Runs a campaign on a cluster: nodes on the server workers, and loads on all client workers at the same time.

All times are taken on the clients' workers. Simultaneous work of several clients becomes one sample, over the time in
which all of them ran. A machine that dies takes its nodes with it, and all further work on that grid is recorded as a
failure.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count, pairwise
from typing import Any

from attrs import asdict, define, evolve, field, frozen

from perf.campaigns.campaign import Cell, Encoding
from perf.network.contract import NetworkError
from perf.network.workers import Cluster, Interval, Load, Machine, merged_rate
from perf.processes.node_directory import node_command, node_files
from perf.processes.node_process import free_ports, wait_until
from perf.records.record import Sample
from perf.runs.client_actor import ClientActor, GridNodeActor, begin_name, over_name, ready_name
from perf.runs.sample import blank
from perf.sampling.environment import ROOT
from perf.systems.processes import ProcessSystem

POLL_S = 0.01
TOGETHER_S = 0.25
"""Seconds between the last client's readiness and the common start, enough for all of them to learn of it."""
FURL = "private/introducer.furl"


@frozen(kw_only=True)
class Played:
    """One client's samples, each with its machine's clock at its start. failure: of the client itself."""

    machine: Machine
    samples: Sequence[tuple[float, Sample]]
    failure: str = ""


class Machines:
    """The machines of a cluster, all with the tree under test."""

    def __init__(self, cluster: Cluster) -> None:
        """NetworkError if a role has no machine, or one has a different tree."""
        self.cluster = cluster
        self.all = cluster.machines()
        self.servers = [machine for machine in self.all if machine.role == "server"]
        self.clients = [machine for machine in self.all if machine.role == "client"]
        ours = tree_state()
        for load in cluster.run(self.all, tree_state):
            if load.failure:
                raise NetworkError(
                    f"the worker on {load.machine.host} cannot run what this tree sends it ({load.failure}): start it in a "
                    f"checkout of this commit, as {ROOT} is, with the Python of its environment"
                )
            if load.result != ours:
                raise NetworkError(
                    f"the worker on {load.machine.host} has another tree: {load.result}, and here it is {ours}"
                )

    def found(self) -> Mapping[str, Any]:
        """For the record: the machines and their clocks."""
        return {"topology": "machines", "machines": [asdict(machine) for machine in self.all]}


def tree_state() -> str:
    """The tree's commit, whether it is modified, and Python's version."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = " (modified)" if git("status", "--porcelain", "--untracked-files=no") else ""
    return f"commit {git('rev-parse', 'HEAD') or 'unknown'}{changed}, Python {sys.version.split()[0]}"


@define
class MachineGrid:
    """A grid of one system: an introducer, storage nodes spread over the server machines, and clients on each client
    machine.
    """

    system: ProcessSystem
    machines: Machines
    _nodes: list[tuple[Machine, Any]] = field(factory=list)
    _clients: list[tuple[Machine, Any]] = field(factory=list)

    def start(self, servers: int, encodings: Sequence[Encoding]) -> None:
        """Start everything; NetworkError if a machine cannot, or dies meanwhile."""
        settings = self.system.node_settings
        introducer = self._start_node("introducer", self.machines.servers[0], evolve(settings, role="introducer"))
        wait_until(lambda: bool(self._ask(introducer, "read", FURL).strip()), "the introducer's FURL")
        furl = self._ask(introducer, "read", FURL).strip()
        for index in range(servers):
            machine = self.machines.servers[index % len(self.machines.servers)]
            self._nodes.append(self._start_node(f"storage{index}", machine, evolve(settings, introducer_furl=furl)))
        arguments = (self.system.label, furl, servers, tuple(encodings))
        for machine in self.machines.clients:
            self._clients.append((machine, self.machines.cluster.place(machine, ClientActor, *arguments)))

    def lost(self) -> list[str]:
        """Its machines that are no longer present."""
        present = self.machines.cluster.present()
        used = {machine.address: machine for machine, _ in [*self._nodes, *self._clients]}
        return [machine.host for address, machine in used.items() if address not in present]

    def usage(self) -> list[tuple[float, int]]:
        """Processor seconds and peak memory of each storage node; empty if one is gone."""
        answers = self.machines.cluster.answers(self._asked(self._nodes, "usage"))
        return [] if any(one.failure for one in answers) else [_result(one) for one in answers]

    def signal(self, number: int) -> None:
        """Signal all its processes: SIGSTOP freezes them, SIGCONT lets them continue."""
        self.machines.cluster.answers(self._asked([*self._nodes, *self._clients], "signal", number))

    def play(self, cell: Cell, meetings: str) -> tuple[list[Played], list[list[tuple[float, int]]]]:
        """Run a cell on all clients at once; also return the storage nodes' usage before each step and at the end."""
        cluster = self.machines.cluster
        asked = [
            (machine, cluster.call(client, "play", cell, meetings, machine.offset_s))
            for machine, client in self._clients
        ]
        used = []
        try:
            for number in count():
                if not self._all_ready(asked, meetings, number):
                    break
                used.append(self.usage())
                cluster.tell(begin_name(meetings, number), time.time() + (TOGETHER_S if len(asked) > 1 else 0.0))
        finally:
            cluster.event(over_name(meetings)).set()
        answers = cluster.answers(asked)
        used.append(self.usage())
        return [Played(machine=one.machine, samples=one.result or (), failure=one.failure) for one in answers], used

    def _all_ready(self, asked: Sequence[tuple[Machine, Any]], meetings: str, number: int) -> bool:
        """Wait until every living client is ready for the step of this number; False if none is left."""
        while True:
            present = self.machines.cluster.present()
            active = [machine for machine, future in asked if not future.done() and machine.address in present]
            if not active:
                return False
            names = [ready_name(meetings, number, machine.address) for machine in active]
            if all(self.machines.cluster.event(name).is_set() for name in names):
                return True
            time.sleep(POLL_S)

    def _start_node(self, name: str, machine: Machine, settings: Any) -> tuple[Machine, Any]:  # noqa: ANN401
        (ports,) = self.machines.cluster.run([machine], partial(free_ports, 1))
        settings = evolve(settings, port=_result(ports)[0], address=machine.host)
        files = node_files(name, settings)
        if settings.kind == "grid":
            files["grid.cfg"] = files["tahoe.cfg"]
        words = [f"{{{settings.kind}}}", *node_command(settings)[1:], "{directory}"]
        return machine, self.machines.cluster.place(machine, GridNodeActor, files, words)

    def _asked(
        self, actors: Sequence[tuple[Machine, Any]], method: str, *arguments: object
    ) -> list[tuple[Machine, Any]]:
        return [(machine, self.machines.cluster.call(actor, method, *arguments)) for machine, actor in actors]

    def _ask(self, node: tuple[Machine, Any], method: str, *arguments: object) -> str:
        (answer,) = self.machines.cluster.answers(self._asked([node], method, *arguments))
        return str(_result(answer))


class MachineStage:
    """The grids of one run; all but the measured one are frozen."""

    def __init__(self, grids: Mapping[str, MachineGrid]) -> None:
        self._grids = grids
        self._running = set(grids)
        self._played = 0

    def play(self, cell: Cell) -> Iterator[Sample]:
        """Yield the samples of one cell, merged over all clients."""
        grid = self._grids[cell.system]
        if lost := grid.lost():
            gone = ", ".join(lost)
            yield evolve(blank(cell, cell.load.scenario), error=f"machines are gone, and their nodes with them: {gone}")
            return
        self._thaw(cell.system)
        self._played += 1
        played, used = grid.play(cell, f"{id(self):x}-{time.time_ns():x}-{self._played}")
        yield from with_servers(merged(cell, played), used)

    def close(self) -> None:
        """Let all grids continue, so they can end."""
        for label in self._grids:
            self._signal(label, signal.SIGCONT)

    def _thaw(self, wanted: str) -> None:
        for label in self._grids:
            if label != wanted:
                self._signal(label, signal.SIGSTOP)
        self._signal(wanted, signal.SIGCONT)

    def _signal(self, label: str, number: int) -> None:
        runs = number == signal.SIGCONT
        if runs != (label in self._running):
            self._grids[label].signal(number)
            (self._running.add if runs else self._running.discard)(label)


def start_grids(
    cluster: Cluster, systems: Mapping[str, ProcessSystem], servers: int, encodings: Sequence[Encoding]
) -> tuple[MachineStage, Machines]:
    """Start all grids of a run one after the other, freezing each before the next starts."""
    machines = Machines(cluster)
    grids = {}
    for label, system in systems.items():
        grids[label] = MachineGrid(system, machines)
        grids[label].start(servers, encodings)
    return MachineStage(grids), machines


def merged(cell: Cell, played: Sequence[Played]) -> list[Sample]:
    """The samples of a cell: those of the only client, or for each step one that merges all clients. Pure.

    A step's seconds are the time its bytes would take at the combined rate reached while every client was working.
    """
    if len(played) == 1 and not played[0].failure:
        return [sample for _, sample in played[0].samples]
    steps = max((len(one.samples) for one in played), default=0)
    if not steps:
        return [_failed(blank(cell, cell.load.scenario), played, 0)]
    return [_merged_step(cell, played, step) for step in range(steps)]


def _merged_step(cell: Cell, played: Sequence[Played], step: int) -> Sample:
    there = [(one, *one.samples[step]) for one in played if step < len(one.samples)]
    first = there[0][2]
    if len(there) < len(played) or any(sample.seconds is None for _, _, sample in there):
        return _failed(first, played, step)
    intervals = [
        (one.machine, [Interval(began=began, ended=began + (sample.seconds or 0), amount=_amount(sample))])
        for one, began, sample in there
    ]
    rate = merged_rate(intervals)
    total = sum(_amount(sample) for _, _, sample in there)
    whole = evolve(
        first,
        factors={**first.factors, "clients": len(there)},
        size=sum(sample.size for _, _, sample in there),
        count=sum(sample.count for _, _, sample in there),
        first_byte_s=None,
        series=None,
        timeline=None,
        **{name: _sum(getattr(sample, name) for _, _, sample in there) for name in _SUMMED},
        members={
            f"{name} of {one.machine.host}": values
            for one, _, sample in there
            for name, values in sample.members.items()
        },
        files=_lines(there),
    )
    if not rate:
        return evolve(
            whole, seconds=None, error="the clients never ran at the same time: take larger files, or more of them"
        )
    return evolve(whole, seconds=total / rate)


_SUMMED = (
    "client_cpu_s",
    "client_user_s",
    "client_system_s",
    "client_peak_rss",
    "client_idle_rss",
    "bytes_out",
    "bytes_in",
    "segments_out",
    "segments_in",
    "requests",
)


def _lines(there: Sequence[tuple[Played, float, Sample]]) -> list[list[Any]]:
    """For each client its bytes and times, on a common clock."""
    began = [begin - one.machine.offset_s for one, begin, _ in there]
    start = min(began)
    return [
        [sample.size, round(at - start, 6), round(at - start, 6), round(at - start + (sample.seconds or 0), 6), ""]
        for at, (_, _, sample) in zip(began, there, strict=True)
    ]


def _failed(sample: Sample, played: Sequence[Played], step: int) -> Sample:
    said = []
    for one in played:
        error = one.failure or (one.samples[step][1].error if step < len(one.samples) else "did not get that far")
        if error:
            said.append(f"the client on {one.machine.host}: {error}")
    factors = {**sample.factors, "clients": len(played)}
    return evolve(sample, factors=factors, seconds=None, error="; ".join(said)[:500])


def _amount(sample: Sample) -> float:
    return sample.size or sample.count


def _sum(values: Iterator[Any]) -> Any:  # noqa: ANN401 - of the kind of its parts
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def with_servers(samples: Sequence[Sample], used: Sequence[Sequence[tuple[float, int]]]) -> list[Sample]:
    """Add the storage nodes' usage to the samples. used: before each step and at the end; empty if unknown. Pure."""
    spans = list(pairwise(used))
    if len(samples) == 1:
        spans = [(used[0], used[-1])]
    if len(spans) != len(samples) or not all(used):
        return list(samples)
    filled = []
    for sample, (before, after) in zip(samples, spans, strict=True):
        spent = [round(new - old, 2) for (old, _), (new, _) in zip(before, after, strict=True)]
        peaks = [peak for _, peak in after]
        filled.append(
            evolve(
                sample,
                server_cpu_s=sum(spent),
                server_cpus_s=spent,
                server_peak_rss=max(peaks),
                server_peaks_rss=peaks,
            )
        )
    return filled


def _result(load: Load[Any]) -> Any:  # noqa: ANN401 - whatever was asked for
    if load.failure:
        raise NetworkError(f"{load.machine.host}: {load.failure}")
    return load.result
