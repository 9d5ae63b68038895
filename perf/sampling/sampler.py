"""What each of a system's processes does during one operation: totals, and ten times a second. Linux only.

A thread reads /proc during the operation: one file per process, about 20 microseconds, and three of the machine. Commands started by the
operation are children of this process, and count as the client's.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import psutil
from attrs import evolve, field, frozen

from perf.sampling.traffic import Traffic, connections, difference

T = TypeVar("T")

INTERVAL_S = 0.1
CHILDREN_EVERY = 10
"""Looks from one search for what the watched processes have started to the next."""
MOST_READ = 2**16
KEPT = 1200
"""Points of a series; longer operations keep every second, third, ... one."""

PRESSURES = ("cpu", "io", "memory")
_TICKS_S = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_HAS_CHILDREN = Path("/proc/thread-self/children").exists()


@frozen(kw_only=True)
class Spent:
    """Usage of one process, or of several with the same name. resident: peak memory in bytes."""

    user_s: float = 0.0
    system_s: float = 0.0
    resident: int = 0
    bytes_in: int | None = None
    bytes_out: int | None = None

    @property
    def cpu_s(self) -> float:
        """Processor seconds, user and system."""
        return self.user_s + self.system_s


@frozen(kw_only=True)
class Series:
    """Processes over time. at_ms: since the start of the operation. cpu_ms: used so far, by name.

    resident_kib: held, by name.

    bytes_in, bytes_out: carried so far by the client's connections; empty without permanent ones. waited_ms: in which some task
    of this machine waited so far, by resource; empty if the kernel does not report it.
    """

    at_ms: Sequence[int] = field(factory=list)
    cpu_ms: Mapping[str, Sequence[int]] = field(factory=dict)
    resident_kib: Mapping[str, Sequence[int]] = field(factory=dict)
    bytes_in: Sequence[int] = field(factory=list)
    bytes_out: Sequence[int] = field(factory=list)
    waited_ms: Mapping[str, Sequence[int]] = field(factory=dict)


@frozen(kw_only=True)
class Watched:
    """The cost of an operation. spent: by process name.

    pressure: fraction of the time in which any task on this machine waited.

    others_cpu_s: processor seconds of systems that should have been frozen; None if not observed.
    """

    spent: Mapping[str, Spent]
    pressure: Mapping[str, float]
    series: Series = field(repr=False)
    others_cpu_s: float | None = None


@frozen
class _Look:
    user: int = 0
    system: int = 0
    pages: int = 0
    traffic: Traffic | None = None


class Sampler:
    """Watches processes within a context; `watched` has the result afterwards."""

    def __init__(self, members: Mapping[str, Sequence[int]], *, interval_s: float = INTERVAL_S) -> None:
        """members: pids by name.

        Each name includes child processes; `client` also includes what this process starts meanwhile.
        """
        self._members = {name: list(pids) for name, pids in members.items()}
        self._owners = {pid: name for name, pids in members.items() for pid in pids}
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._points: list[tuple[int, dict[str, _Look]]] = []
        self._waits: list[Mapping[str, float]] = []
        self._commands: dict[str, dict[int, _Look]] = {}
        self._started = 0.0
        self._pressure: Mapping[str, float] = {}
        self._open: Mapping[str, Mapping[int, Traffic]] = {}
        self._strangers: set[int] = set()
        """What this process had started before, and nobody watches: the nodes of other systems."""
        self.watched = Watched(spent={}, pressure={}, series=Series())

    def __enter__(self) -> Self:
        self._open = {name: _connections(pids) for name, pids in self._members.items()}
        self._strangers = {pid for _, pid in self._started_meanwhile(everywhere=False)}
        self._pressure = stalls()
        self._started = time.perf_counter()
        self._look(everywhere=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
        self._look(everywhere=True)
        seconds = time.perf_counter() - self._started
        now = stalls()
        self.watched = Watched(
            spent={name: self._spent(name) for name in self._members},
            pressure={name: round((now[name] - self._pressure[name]) / seconds, 3) for name in now if seconds},
            series=self._series(),
        )

    def _watch(self) -> None:
        looks = 0
        while not self._stop.wait(self._interval_s):
            looks += 1
            self._look(everywhere=looks % CHILDREN_EVERY == 0)

    def _look(self, *, everywhere: bool) -> None:
        found = {name: _look_at(pids) for name, pids in self._members.items()}
        if "client" in found:
            for name, pid in self._started_meanwhile(everywhere=everywhere):
                self._commands.setdefault(name, {})[pid] = _look_at([pid])
            for name, commands in self._commands.items():
                found[name] = _sum([found[name], *commands.values()])
            found["client"] = evolve(found["client"], traffic=self._traffic())
        self._points.append((int((time.perf_counter() - self._started) * 1e3), found))
        self._waits.append(stalls())

    def _started_meanwhile(self, *, everywhere: bool) -> Iterator[tuple[str, int]]:
        """Descendants of this process that are not watched: the nearest watched ancestor's name (else the client's) and pid.

        everywhere: those of watched processes too. A node has a dozen threads that the kernel must be asked about, and seldom a child.
        """
        parents = [("client", os.getpid())]
        while parents:
            name, parent = parents.pop()
            for pid in children_of(parent):
                if pid in self._strangers:
                    continue
                if pid not in self._owners:
                    yield name, pid
                elif not everywhere:
                    continue
                parents.append((self._owners.get(pid, name), pid))

    def _traffic(self) -> Traffic | None:
        """What the client's connections have carried since the start."""
        pids = self._members["client"]
        return difference(self._open["client"], _connections(pids)) if pids else None

    def _spent(self, name: str) -> Spent:
        first, last = self._points[0][1][name], self._points[-1][1][name]
        traffic = difference(self._open[name], _connections(self._members[name]))
        return Spent(
            user_s=max(0, last.user - first.user) / _TICKS_S,
            system_s=max(0, last.system - first.system) / _TICKS_S,
            resident=max(point[name].pages for _, point in self._points) * _PAGE,
            bytes_in=traffic.bytes_in if traffic is not None else None,
            bytes_out=traffic.bytes_out if traffic is not None else None,
        )

    def _series(self) -> Series:
        points = thinned(self._points, KEPT)
        carried = [point["client"].traffic for _, point in points if "client" in point]
        known = [one for one in carried if one is not None]
        whole = len(known) == len(points)
        waits = thinned(self._waits, KEPT)
        resources = [name for name in self._pressure if all(name in one for one in waits)]
        return Series(
            bytes_in=[one.bytes_in for one in known] if whole else [],
            bytes_out=[one.bytes_out for one in known] if whole else [],
            at_ms=[at for at, _ in points],
            cpu_ms={name: [_cpu_ms(point[name], points[0][1][name]) for _, point in points] for name in self._members},
            resident_kib={name: [point[name].pages * _PAGE // 1024 for _, point in points] for name in self._members},
            waited_ms={name: [int((one[name] - self._pressure[name]) * 1e3) for one in waits] for name in resources},
        )


def thinned(points: Sequence[T], most: int) -> list[T]:
    """At most `most` of the points, evenly spread, including the first and last."""
    step = -(-(len(points) - 1) // max(1, most - 1)) if len(points) > most else 1
    kept = list(points[::step])
    if points and (len(points) - 1) % step:
        kept[-1:] = [*kept[-1:], points[-1]] if len(kept) < most else [points[-1]]
    return kept


def stalls() -> dict[str, float]:
    """Seconds in which some task of this machine waited for each resource; empty if the kernel does not report it."""
    found = {}
    for name in PRESSURES:
        with suppress(OSError, ValueError, IndexError):
            some = _read(f"/proc/pressure/{name}").partition(b"\n")[0]
            found[name] = int(some.rpartition(b"total=")[2]) / 1e6
    return found


def _sum(looks: Sequence[_Look]) -> _Look:
    return _Look(sum(one.user for one in looks), sum(one.system for one in looks), sum(one.pages for one in looks))


def _cpu_ms(look: _Look, first: _Look) -> int:
    return (look.user + look.system - first.user - first.system) * 1000 // _TICKS_S


def _look_at(pids: Sequence[int]) -> _Look:
    """Combined usage and memory of the processes, except those that have ended."""
    user = system = pages = 0
    for pid in pids:
        with suppress(OSError, IndexError):
            fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            user, system, pages = user + int(fields[11]), system + int(fields[12]), pages + int(fields[21])
    return _Look(user, system, pages)


def children_of(pid: int) -> list[int]:
    """Pids. The kernel lists them for each thread; without that, every process of the machine is asked for its parent."""
    if not _HAS_CHILDREN:
        with suppress(psutil.Error):
            return [child.pid for child in psutil.Process(pid).children()]
        return []
    found = []
    with suppress(OSError):  # It ended meanwhile.
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += [int(child) for child in _read(f"/proc/{pid}/task/{thread}/children").split()]
    return found


def _read(path: str) -> bytes:
    """A small file of the kernel's; OSError. It is read many times a second, beside what is measured: without Python's layers."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, MOST_READ)
    finally:
        os.close(descriptor)


def _connections(pids: Sequence[int]) -> dict[int, Traffic]:
    try:
        return connections(pids)
    except OSError:
        return {}
