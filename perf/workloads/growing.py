"""How cost grows with clients and storage nodes, and what failing servers cost each operation."""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path

from attrs import evolve

from perf.campaigns.arrivals import Schedule
from perf.campaigns.labels import parse_label
from perf.campaigns.workload import Workload, parse_set
from perf.faults.faults import WRITES, Fault, group_cases, plan_cases
from perf.faults.faulty_grid import FaultyGrid
from perf.peers.grids import GridPeer
from perf.processes.installation import OWN
from perf.processes.node_directory import Transport
from perf.records.record import Factor
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
    """Every operation of a running gateway and of commands, without faults and with servers silent or gone."""
    for run in range(settings.runs):
        for label in settings.systems:
            for _ in table.once(run, label, {}):
                transport: Transport = (
                    "foolscap" if parse_label(label.partition("/")[0]).base.endswith("@foolscap") else "http"
                )
                cases = plan_cases([transport], kinds=False, cold=label.endswith("/cli"))
                wanted = [case for case in cases if case.cold == label.endswith("/cli")]
                if settings.lost:
                    wanted = [case for case in wanted if case.fault == Fault() or case.fault.count in settings.lost]
                with FaultyGrid(work / f"faults{run}-{transport}", transport, OWN) as grid:
                    groups = group_cases(wanted)
                    for outcome in (outcome for group in groups for outcome in grid.measure(group, 1)):
                        case = outcome.case
                        hopeless = case.fault.kind == "gone" and case.operation in WRITES
                        operation = f"refusal of {case.operation}" if hopeless else case.operation
                        sample = blank(run, label, operation, {"fault": str(case.fault)}, [])
                        if bool(outcome.errors) != hopeless:
                            error = outcome.errors[0] if outcome.errors else "it was not refused"
                            table.add(evolve(sample, error=error[:500]))
                        else:
                            table.add(evolve(sample, seconds=outcome.seconds[0]))
