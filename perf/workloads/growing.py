"""How cost grows with clients and storage nodes, and what failing servers cost each operation."""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path

from attrs import evolve

from perf.campaigns.arrivals import Schedule
from perf.campaigns.labels import parse_label
from perf.campaigns.workload import Workload, parse_set
from perf.faults.faults import Fault, Outcome, group_cases, may_fail, plan_cases
from perf.faults.faulty_grid import FaultyGrid
from perf.peers.grids import GridPeer
from perf.processes.installation import OWN
from perf.processes.node_directory import Transport
from perf.records.record import Factor, Sample
from perf.workloads.files import make_files
from perf.workloads.rows import Table, blank
from perf.workloads.subjects import empty_folder, make_subject, shuffled, started, take_many
from perf.workloads.verifying import expect_files


def scale(settings: Workload, work: Path, table: Table) -> None:
    """Put and get the same files with 1, 2, ... clients, each a separate node, on grids of increasing size."""
    for run in range(settings.runs):
        for label, nodes in shuffled(settings, run, "", product(settings.systems, settings.nodes)):
            for attempt in table.once(run, label, {"nodes": nodes}):
                with attempt:
                    peer = make_subject(label, nodes)
                    assert isinstance(peer, GridPeer)
                    if started(peer, work / f"run{run}-{nodes}", run, table):
                        with table.attempt(run, label, {"nodes": nodes}):
                            _with_clients(settings, work, table, (run, peer), nodes)
                    peer.stop()


def _with_clients(settings: Workload, work: Path, table: Table, place: tuple[int, GridPeer], nodes: int) -> None:
    """All clients run throughout, so that their numbers may come in any order."""
    run, peer = place
    peer.use_clients(max(settings.clients))
    for clients, files in shuffled(settings, run, f"{peer.label}/{nodes}", product(settings.clients, settings.sets)):
        factors: dict[str, Factor] = {"clients": clients, "nodes": nodes}
        for attempt in table.once(run, peer.label, {"files": files, **factors}):
            with attempt:
                peer.use_clients(clients)
                _by_clients(settings, work, table, place, files, factors)


def _by_clients(
    settings: Workload, work: Path, table: Table, place: tuple[int, GridPeer], files: str, factors: dict[str, Factor]
) -> None:
    """Every client moves one file at a time; the sets do not depend on the number of clients."""
    run, peer = place
    clients = int(factors["clients"])
    size, count = parse_set(files)
    sizes, sources, back = [size] * count, work / "sources", work / "back"
    name = "-".join(["scale", str(run), files, *map(str, factors.values())])
    paths = make_files(sources, sizes, f"{settings.seed}/{peer.label}/{name}")
    back.mkdir()
    plan = Schedule(workers=clients, due_s=(0.0,) * count)
    try:
        put, get = (blank(run, peer.label, operation, factors, sizes) for operation in ("put", "get"))
        take_many(
            table, put, peer, plan, sizes, lambda index: peer.put(paths[index], f"{name}-{index}", index % clients)
        )
        take_many(
            table,
            get,
            peer,
            plan,
            sizes,
            lambda index: peer.get(f"{name}-{index}", back / paths[index].name, index % clients),
            partial(expect_files, sources, back),
        )
    finally:
        empty_folder(sources)
        empty_folder(back)


def faults(settings: Workload, work: Path, table: Table) -> None:
    """Every operation of a running gateway and of commands, without faults and with servers silent, slow, lying or gone."""
    for run in range(settings.runs):
        for label in shuffled(settings, run, "", settings.systems):
            for attempt in table.once(run, label, {}):
                with attempt:
                    _under_faults(settings, work, table, run, label)


def _under_faults(settings: Workload, work: Path, table: Table, run: int, label: str) -> None:
    grid, _, client = label.partition("/")
    parsed = parse_label(grid)
    transport: Transport = "foolscap" if parsed.base.endswith("@foolscap") else "http"
    cases = [
        case
        for case in plan_cases([transport], kinds=False, cold=client == "cli")
        if case.cold == (client == "cli")
        and (not settings.lost or case.fault == Fault() or case.fault.count in settings.lost)
    ]
    folder = work / f"faults{run}-{transport}-{client}"
    with FaultyGrid(folder, transport, OWN, parsed.durability or "full") as faulty:
        for group in shuffled(settings, run, label, group_cases(cases)):
            with table.attempt(run, label, {"fault": group[0].fault}):
                for outcome in faulty.measure(shuffled(settings, run, f"{label}/{group[0].fault}", group), 1):
                    table.add(_judged(outcome, blank(run, label, outcome.case.operation, {}, [])))


def _judged(outcome: Outcome, sample: Sample) -> Sample:
    """The sample of an outcome. Where an operation can only fail, it is its refusal that is measured."""
    case = outcome.case
    sample = evolve(sample, factors={**sample.factors, "fault": str(case.fault)})
    if not may_fail(case):
        failed = [*outcome.errors, *outcome.wrong]
        return evolve(sample, error=failed[0][:500]) if failed else evolve(sample, seconds=outcome.seconds[0])
    sample = evolve(sample, scenario=f"refusal of {case.operation}")
    return evolve(sample, seconds=outcome.seconds[0]) if outcome.errors else evolve(sample, error="it was not refused")
