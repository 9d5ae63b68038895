"""The subjects of workloads: peers and grids, started one at a time, so nothing else runs during a measurement."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar, get_args

from attrs import evolve

from perf.campaigns.arrivals import Schedule
from perf.campaigns.campaign import Encoding
from perf.campaigns.encodings import parse_encoding
from perf.campaigns.workload import GRID_CLIENTS, Workload
from perf.network.contract import NetworkError, Placement
from perf.network.site import LOOPBACK
from perf.network.topologies import make_topology
from perf.peers.catalogue import make_peer
from perf.peers.contract import Cost, Peer
from perf.peers.grids import GridClientName, GridPeer
from perf.peers.programs import MissingPeerError
from perf.records.record import Sample
from perf.sampling.touched import touch_for
from perf.sampling.watch import Line
from perf.workloads.files import make_files
from perf.workloads.modes import Transfer, run_schedule, summarize
from perf.workloads.rows import Meter, Table, blank, describe, transfers_of, with_transfers

P = ParamSpec("P")
T = TypeVar("T")

WARM_UP_BYTES = 100_000


def make_subject(text: str, servers: int = 10, encoding: Encoding | None = None) -> Peer:
    """A peer by its label, or a grid by its label with a client of GRID_CLIENTS; ValueError."""
    label, mark, client = text.partition("/")
    if not mark:
        return make_peer(text, servers)
    for known in get_args(GridClientName):
        if client == known:
            return GridPeer(label, known, servers, encoding)
    raise ValueError(f"{text}: the client of a grid is one of {', '.join(GRID_CLIENTS)}")


def each_subject(settings: Workload, work: Path, table: Table) -> Iterator[tuple[int, Peer]]:
    """Yield run and started subject: all of them in each run, in a seeded random order, one site after the other.

    A missing peer is recorded as a gap with its reason, and so is a site that this machine cannot create.
    """
    for run in range(settings.runs):
        for index, site in enumerate(settings.sites):
            table.place = {} if site == LOOPBACK else {"site": str(site)}
            with ExitStack() as stack:
                try:
                    topology = stack.enter_context(make_topology(site, settings.servers))
                except NetworkError as error:
                    table.leave_out(f"all at {site}", str(error))
                    continue
                if site != LOOPBACK:
                    table.found(run, str(site), topology.found())
                yield from _at_site(settings, work / f"run{run}-{index}", table, run, topology.placement)
            table.place = {}


def _at_site(
    settings: Workload, root: Path, table: Table, run: int, placement: Placement
) -> Iterator[tuple[int, Peer]]:
    """All subjects at an entered site; grids with each encoding."""
    root.mkdir(exist_ok=True)
    site = table.place
    choices = [
        (label, encoding)
        for label in settings.systems
        for encoding in (settings.encoding if "/" in label and settings.encoding else [""])
    ]
    random.Random(f"{settings.seed}/{run}").shuffle(choices)
    for number, (label, text) in enumerate(choices):
        encoding = parse_encoding(text) if text else None
        table.place = {**site, **({"k": encoding.needed, "n": encoding.total} if encoding is not None else {})}
        for _ in table.once(run, label, {"driver": settings.driver}):
            peer = make_subject(label, settings.servers, encoding)
            if started(peer, root / f"{number}", run, table, placement):
                _warm_up(settings, root, table, (run, peer))
                yield run, peer
            with table.attempt(run, label, {}, "stop"):
                peer.stop()
        table.place = site


def _warm_up(settings: Workload, root: Path, table: Table, place: tuple[int, Peer]) -> None:
    """Put and get files before measuring; these samples do not count."""
    run, peer = place
    for number in range(settings.warmups):
        (source,) = make_files(root / "warm-up", [WARM_UP_BYTES], f"warm-up/{settings.seed}/{run}/{number}")
        name, back = f"warm-up-{run}-{number}", root / "warm-up-back"
        try:
            for operation in (partial(peer.put, source, name), partial(peer.get, name, back)):
                scenario = operation.func.__name__
                take(table, evolve(blank(run, peer.label, scenario, {}, [WARM_UP_BYTES]), warmup=True), peer, operation)
        finally:
            empty_folder(root / "warm-up")
            back.unlink(missing_ok=True)


def started(peer: Peer, root: Path, run: int, table: Table, placement: Placement | None = None) -> bool:
    """Start it, to be stopped with the table's stack at the latest; False, with a gap or failure recorded, if that
    fails.
    """
    table.stack.callback(_end, peer)
    try:
        peer.start(root, placement)
    except MissingPeerError as error:
        table.leave_out(peer.label, str(error))
        return False
    except Exception as error:  # noqa: BLE001 - whatever a system under test does wrong is a result
        table.add(evolve(blank(run, peer.label, "start", {}, []), error=describe(error)))
        return False
    return True


def _end(peer: Peer) -> None:
    """Stop it once more when everything ends; a failure is known by then."""
    with suppress(Exception):
        peer.stop()


def shuffled(settings: Workload, run: int, system: str, levels: Iterable[T]) -> list[T]:
    """The levels of a factor in a seeded random order, another one in each run and for each system.

    So drift within a run does not look like an effect of the factor.
    """
    mixed = list(levels)
    random.Random(f"{settings.seed}/{run}/{system}/{len(mixed)}").shuffle(mixed)
    return mixed


def unchecked() -> None:
    """Compare nothing: of operations that bring nothing back."""


def take(
    table: Table, sample: Sample, peer: Peer, operation: Callable[P, Cost], *arguments: P.args, **named: P.kwargs
) -> Sample:
    """Measure one operation with these arguments and add its sample, even if it fails."""
    return take_checked(table, sample, peer, unchecked, operation, *arguments, **named)


def take_checked(
    table: Table,
    sample: Sample,
    peer: Peer,
    check: Callable[[], object],
    operation: Callable[P, Cost],
    *arguments: P.args,
    **named: P.kwargs,
) -> Sample:
    """The same for an operation whose effect is checked before its sample is added, outside of what is measured.

    check: raises if the operation did not do what it said, which is then the failure of the sample.
    """
    transfers: Sequence[Line] = ()
    touch_for(sample.size)
    try:
        with Meter(peer) as meter:
            cost = operation(*arguments, **named)
        done, transfers = meter.fill(evolve(sample, seconds=cost.seconds), [cost]), transfers_of(sample, cost)
        check()
    except Exception as failure:  # noqa: BLE001 - whatever a system under test does wrong is a result
        done = evolve(sample, error=describe(failure))
    table.add(done, transfers)
    return done


def take_many(
    table: Table,
    sample: Sample,
    peer: Peer,
    plan: Schedule,
    sizes: Sequence[int],
    operation: Callable[[int], Cost],
    check: Callable[[], object] = unchecked,
) -> Sample:
    """Measure transfers on a schedule, and add one sample for all, with a line for each. check: of all, as above."""
    costs: list[Cost] = []
    transfers: Sequence[Transfer] = ()
    touch_for(sample.size)
    try:
        with Meter(peer) as meter:
            transfers = run_schedule(plan, lambda index: costs.append(operation(index)))
        done = meter.fill(sample, costs)
        failed = [one.error for one in transfers if one.error]
        if failed:
            done = evolve(done, error=f"{len(failed)} of {len(transfers)} failed: {failed[0]}")
        else:
            check()
            done = evolve(done, seconds=round(summarize(transfers)[3], 6))
    except Exception as failure:  # noqa: BLE001 - whatever a system under test does wrong is a result
        done = evolve(sample, error=describe(failure))
    done = with_transfers(done, sizes, transfers)
    table.add(done)
    return done


def empty_folder(path: Path) -> None:
    """Remove a folder if it exists."""
    shutil.rmtree(path, ignore_errors=True)
