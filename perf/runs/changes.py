"""Creates, fills and lists directories, and measures idle grids; for warm clients only.

Children are links to one small file of the same grid; names are verified after every change and listing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, MutableMapping

from attrs import evolve

from perf.campaigns.campaign import Cell
from perf.records.record import Sample
from perf.runs.sample import WrongBytesError, blank, failed_before, filled, take
from perf.sampling.usage import Usage
from perf.systems.contract import System

SETTLING_S = 5.0


def make_directories(system: System, cell: Cell) -> Sample:
    """Create empty directories, one after the other."""

    def make() -> Usage:
        caps, usage = system.ask(cell.encoding, lambda warm: warm.make_directories(cell.load.count))
        if len(set(caps)) != cell.load.count:
            raise WrongBytesError("fewer or more directories than were requested")
        _expect(system, cell, caps[-1], [])
        return usage

    return take(system, blank(cell, "mkdir"), make)


def add_children(system: System, cell: Cell, child_cap: Callable[[], str]) -> Sample:
    """Link children to a new directory: all at once, or one after the other."""
    nothing = blank(cell, cell.load.scenario)
    try:
        cap = child_cap()
        directory = _new_directory(system, cell)
    except Exception as error:  # noqa: BLE001 - whatever a system under test does wrong is a result
        return failed_before(nothing, error)

    def add() -> Usage:
        usage = _link(system, cell, directory, cap, at_once=cell.load.scenario == "add-batch")
        _expect(system, cell, directory, names_of(cell.load.count))
        return usage

    return take(system, nothing, add)


def list_children(
    system: System, cell: Cell, listed: MutableMapping[tuple[str, int], str], child_cap: Callable[[], str]
) -> Sample:
    """List a directory filled earlier in the run. listed: its capability, by system and number of children."""
    nothing = blank(cell, "list")
    key = cell.system, cell.load.count
    try:
        if key not in listed:
            directory = _new_directory(system, cell)
            _link(system, cell, directory, child_cap(), at_once=True)
            listed[key] = directory
    except Exception as error:  # noqa: BLE001 - as above
        return failed_before(nothing, error)
    return take(system, nothing, lambda: _expect(system, cell, listed[key], names_of(cell.load.count)))


def idle(systems: Mapping[str, System], cell: Cell) -> dict[str, Sample]:
    """Leave all systems alone for the load's duration, and measure what each of them spends.

    A few seconds pass first, so start-up work does not count, also that of gateways, which start when they are first asked.
    """
    for system in systems.values():
        system.ask(cell.encoding, lambda _: None, cell.client)
    time.sleep(min(SETTLING_S, cell.load.seconds))
    samples: dict[str, Sample] = {}
    waiting = iter(systems.items())

    def watch() -> None:
        label, system = next(waiting, ("", None))
        if system is None:
            time.sleep(cell.load.seconds)
            return
        now, before = time.time(), system.server_cpus_s()
        _, usage = system.ask(cell.encoding, lambda _: watch(), cell.client)
        spent = [new - old for new, old in zip(system.server_cpus_s(), before, strict=True)]
        empty = evolve(blank(cell, "idle"), system=label, unix_time=now)
        samples[label] = filled(empty, usage, spent, system)

    watch()
    return samples


def names_of(count: int) -> list[str]:
    """The names of `count` children, sorted."""
    return [f"child {number:06}" for number in range(count)]


def _new_directory(system: System, cell: Cell) -> str:
    (directory,), _ = system.ask(cell.encoding, lambda warm: warm.make_directories(1))
    return directory


def _link(system: System, cell: Cell, directory: str, cap: str, *, at_once: bool) -> Usage:
    children = [(name, cap) for name in names_of(cell.load.count)]
    _, usage = system.ask(cell.encoding, lambda warm: warm.add_children(directory, children, at_once=at_once))
    return usage


def _expect(system: System, cell: Cell, directory: str, names: list[str]) -> Usage:
    found, usage = system.ask(cell.encoding, lambda warm: warm.list_children(directory))
    if sorted(found) != names:
        raise WrongBytesError(f"{len(found)} children are there, where {len(names)} were linked")
    return usage
