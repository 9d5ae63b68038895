"""Measures a system alone: all others are frozen during its operations, and its processes are watched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from attrs import evolve

from perf.campaigns.campaign import Encoding, Format, Load
from perf.network.contract import Placement
from perf.sampling.freezer import Freezer, frozen, with_descendants
from perf.sampling.sampler import Sampler, Watched
from perf.sampling.usage import Usage, cpu_seconds
from perf.systems.contract import Capabilities, Fetch, Member, System, WarmClient

T = TypeVar("T")


class Alone:
    """Decorates a system of a run."""

    def __init__(self, system: System, others: Sequence[System], freezer: Freezer | None) -> None:
        """others: of the same run. freezer: None to let them continue."""
        self.label = system.label
        self._system = system
        self._others = others
        self._freezer = freezer

    def put(
        self, client: str, encoding: Encoding, sources: Sequence[Path], concurrency: int, format: Format = "chk"
    ) -> tuple[Sequence[str], Usage]:
        """Upload the files, alone."""

        def put() -> tuple[Sequence[str], Usage]:
            return self._system.put(client, encoding, sources, concurrency, format)

        (caps, usage), watched = self._watch(put)
        return caps, evolve(usage, watched=watched)

    def get(self, client: str, encoding: Encoding, fetches: Sequence[Fetch], concurrency: int) -> Usage:
        """Download to the files, alone."""
        usage, watched = self._watch(lambda: self._system.get(client, encoding, fetches, concurrency))
        return evolve(usage, watched=watched)

    def ask(self, encoding: Encoding, operation: Callable[[WarmClient], T], client: str = "warm") -> tuple[T, Usage]:
        """Measure any other operation, alone."""
        (result, usage), watched = self._watch(lambda: self._system.ask(encoding, operation, client))
        return result, evolve(usage, watched=watched)

    def start(self, root: Path, servers: int, encodings: Sequence[Encoding], placement: Placement) -> None:
        """Start the system, without freezing others."""
        self._system.start(root, servers, encodings, placement)

    def stop(self) -> None:
        """Stop the system."""
        self._system.stop()

    def capabilities(self, encoding: Encoding) -> Capabilities:
        """The system's capabilities."""
        return self._system.capabilities(encoding)

    def refuses(self, load: Load, client: str) -> str:
        """What the system refuses."""
        return self._system.refuses(load, client)

    def members(self) -> Sequence[Member]:
        """The system's members."""
        return self._system.members()

    def server_cpus_s(self) -> list[float]:
        """The system's processor seconds."""
        return self._system.server_cpus_s()

    def server_peaks(self) -> list[int]:
        """The system's memory peaks."""
        return self._system.server_peaks()

    def _watch(self, operation: Callable[[], T]) -> tuple[T, Watched]:
        others = [member.pid for system in self._others for member in system.members()]
        with ExitStack() as stack:
            if self._freezer is not None:
                stack.enter_context(frozen(self._freezer, others))
            before = _cpu_seconds(others)
            with Sampler(members_of(self._system)) as sampler:
                result = operation()
            spent = sum(_cpu_seconds(others).values()) - sum(before.values())
        return result, evolve(sampler.watched, others_cpu_s=round(spent, 2) if others else None)


def members_of(system: System) -> Mapping[str, Sequence[int]]:
    """A system's processes by role: `client`, `server0`, ..., `other`."""
    found: dict[str, list[int]] = {"client": []}
    for member in system.members():
        name = f"server{member.index}" if member.role == "server" else member.role
        found.setdefault(name, []).append(member.pid)
    return found


def _cpu_seconds(pids: Sequence[int]) -> dict[int, float]:
    found = {}
    for process in with_descendants(pids):
        try:
            found[process.pid] = cpu_seconds([process.pid])
        except OSError:
            continue
    return found
