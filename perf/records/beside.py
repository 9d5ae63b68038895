"""What a record has beside its samples: what was kept of slow ones, what could not be measured, sites, and what was left on a user's grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen


@frozen(kw_only=True)
class Timeline:
    """What was kept of one slow operation. median: usual seconds of its kind.

    left_out: number of dropped events in the middle. events: in the form of perf.sampling.timeline; of many transfers, those of the
    slowest. Empty for a system that reports none. status: the status page of such a system.
    """

    run: int
    order: int
    median: float
    left_out: int = 0
    events: Sequence[Sequence[Any]] = field(default=(), repr=False)
    status: str = field(default="", repr=False)


@frozen(kw_only=True)
class SlowTransfer:
    """One transfer that took much longer than the others of its sample.

    number: its place among them, from 0. size: bytes. due_s, started_s, ended_s: from the start of the sample. usual_s: what
    one of its size took in this sample.
    """

    run: int
    order: int
    number: int
    size: int
    due_s: float
    started_s: float
    ended_s: float
    usual_s: float

    @property
    def seconds(self) -> float:
        """The time a user waited: from the scheduled start."""
        return self.ended_s - self.due_s

    @property
    def factor(self) -> float:
        """How many times the usual seconds it took."""
        return self.seconds / self.usual_s


@frozen(kw_only=True)
class Gap:
    """Something that was not measured. work: in words; empty for everything. reason: why."""

    system: str
    work: str
    reason: str


@frozen(kw_only=True)
class SiteFound:
    """Measurements of a site in one run, before its use; those at the run's end, if they differ, below `afterwards`."""

    run: int
    site: str
    found: Mapping[str, Any]


@frozen(kw_only=True)
class Left:
    """Something that a run left on a user's grid. storage_index: in base32; it lets nobody read anything."""

    storage_index: str
    size: int
