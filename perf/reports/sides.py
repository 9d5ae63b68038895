"""Processor seconds of both sides of a transfer, user and system, and what limits it. Pure.

A side is the client or all servers together. User seconds are the program's own (ciphers, hashing, the interpreter),
system seconds the kernel's (network and disk). Their rate alone, without any user seconds, is the side's ceiling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from attrs import frozen

from perf.records.record import Record, Sample
from perf.records.work import MB, Work, work_of
from perf.reports.report import short
from perf.sampling.statistics import median

CLIENT, SERVERS = "client", "servers"

BUSY = 0.8
"""Part of what a side may use from which its processor is the limit. Clocks tick every 10 ms, and starts take time."""

SEVERAL = 1.1
"""A side without a limit that uses more than this many cores can use them all; another is held to one by its program."""

WORKING = 0.25
"""A server works if it spends this part of what the busiest one does; a get leaves most of them idle."""

WAITING = 0.5
"""Part of the time in which something waited for the disk, from which it is the bottleneck."""

NOTE = (
    "A side is the client, or all servers together. User seconds are the program's own (ciphers, hashing, the interpreter), "
    "system seconds the kernel's (network and disk). The ceiling is bytes / system seconds, for the part of a core that the side may "
    "use: its rate without any user seconds. A percentage is what a side used of what it may use: one core if it is not limited "
    "(all cores if it used several), and of servers the limits of those that worked. A side is the bottleneck from 80 % on. Clocks tick every 10 ms."
)

TURNS = "both sides in turn, neither at its limit alone"
NAMED = 4
"""Systems named in a sentence; of more, the number."""

_LIMIT = re.compile(r"(servers|client) at ([\d.]+)% of a core")


@frozen(kw_only=True)
class Side:
    """A side of one kind of work of one system, means over its samples.

    user_s, system_s: processor seconds. cores: what it may use; servers that do nothing do not count.
    """

    name: str
    user_s: float
    system_s: float
    cores: float
    seconds: float

    @property
    def used(self) -> float:
        """The part of its cores that it uses."""
        return (self.user_s + self.system_s) / (self.cores * self.seconds)

    def ceiling(self, size: int) -> float | None:
        """MB/s that its system seconds alone allow; None if the clock saw none."""
        return size / MB * self.cores / self.system_s if self.system_s else None


@frozen(kw_only=True)
class Sides:
    """Both sides of a kind of work. cores: of the machine, which both share.

    disk: part of the time in which something waited for it. samples: how many these are the means of.
    """

    system: str
    work: Work
    client: Side
    servers: Side
    cores: int
    disk: float
    samples: int

    @property
    def both(self) -> Side:
        """The two together, on the whole machine."""
        user, system = self.client.user_s + self.servers.user_s, self.client.system_s + self.servers.system_s
        return Side(
            name=f"{self.cores} cores", user_s=user, system_s=system, cores=self.cores, seconds=self.client.seconds
        )

    @property
    def bottleneck(self) -> str:
        """What limits the work, in words; empty if nothing that was sampled is at its limit."""
        fullest = max(self.client, self.servers, self.both, key=lambda side: side.used)
        if fullest.used >= BUSY:
            return f"{_of(fullest)}, mostly {'user' if fullest.user_s >= fullest.system_s else 'system'} seconds"
        if self.disk >= WAITING:
            return "the disk"
        one_by_one = dict(self.work.factors).get("concurrency", 1) == 1
        return TURNS if one_by_one and self.client.used + self.servers.used >= BUSY else ""

    def __str__(self) -> str:
        size, parts = self.work.size, []
        for side in (self.client, self.servers):
            ceiling = side.ceiling(size)
            most = f", ceiling {short(ceiling)} MB/s" if ceiling else ""
            allowed = f"{side.used:.0%} of {side.cores:g} core{'' if side.cores == 1 else 's'}"
            parts.append(f"{side.name} {side.user_s:.2f} s user and {side.system_s:.2f} s system ({allowed}{most})")
        found = f"the bottleneck is {self.bottleneck}" if self.bottleneck else "nothing sampled is at its limit"
        rate = f"{short(size / MB / self.client.seconds)} MB/s"
        whole = f"both together {self.both.used:.0%} of the machine's {self.cores} cores"
        waited = f"something waited for the disk in {self.disk:.0%} of the time"
        once = "" if self.samples > 1 else "; one sample"
        return f"{self.work}, {self.system}: {found}. {rate}; {'; '.join([*parts, whole, waited])}{once}."


def has_sides(record: Record) -> bool:
    """Whether the record asks what limits a transfer: a side is held to part of a core, or ciphers are compared."""
    works = {str(sample.factors.get("site", "")) for sample in record.samples}
    return any(map(_LIMIT.search, works)) or any("+cipher=" in system for system in record.header.systems)


def sides_of(record: Record) -> list[Sides]:
    """Both sides of every kind of work that moved bytes, in the order of the record's systems."""
    kinds: dict[tuple[Work, str], list[Sample]] = {}
    for sample in record.measured():
        if (
            sample.client_user_s is not None
            and sample.server_user_s is not None
            and sample.size
            and not _is_try(sample)
        ):
            kinds.setdefault((work_of(sample), sample.system), []).append(sample)
    order = {system: number for number, system in enumerate(record.header.systems)}
    ranked = sorted(kinds.items(), key=lambda one: (one[0][0], order.get(one[0][1], len(order))))
    cores = int(record.header.environment.get("cpu_count") or 1)
    return [_sides(work, system, samples, cores) for (work, system), samples in ranked]


def overview_of_sides(found: Sequence[Sides]) -> list[str]:
    """A sentence for each kind of work: the bottleneck of each system, and the range of the ceilings."""
    works: dict[Work, list[Sides]] = {}
    for one in found:
        works.setdefault(one.work, []).append(one)
    return [f"{work}: {'; '.join([*_bottlenecks(mine), *_ceilings(work, mine)])}." for work, mine in works.items()]


def _bottlenecks(found: Sequence[Sides]) -> Iterable[str]:
    kinds: dict[str, list[str]] = {}
    for one in found:
        kinds.setdefault(one.bottleneck, []).append(one.system)
    for kind, systems in kinds.items():
        named = systems if len(systems) <= NAMED else [*systems[:NAMED], f"{len(systems) - NAMED} more"]
        what = f"the bottleneck is {kind}" if kind else "nothing sampled is at its limit"
        yield f"{what} ({', '.join(named)})"


def _ceilings(work: Work, found: Sequence[Sides]) -> Iterable[str]:
    """What system seconds alone would allow."""
    for side in (CLIENT, SERVERS):
        rates = [rate for one in found if (rate := getattr(one, side).ceiling(work.size))]
        if rates:
            yield f"ceiling of the {side} (bytes / system seconds) {short(min(rates))} to {short(max(rates))} MB/s"


def _sides(work: Work, system: str, samples: Sequence[Sample], cores: int) -> Sides:
    seconds = median([sample.seconds or 0.0 for sample in samples])
    limits = {name: float(part) / 100 for name, part in _LIMIT.findall(str(dict(work.factors).get("site", "")))}
    if SERVERS in limits:
        limits[SERVERS] *= median([float(_working(sample)) for sample in samples])
    client, servers = (
        _side(name, field, samples, seconds, limits.get(name), cores)
        for name, field in ((CLIENT, "client"), (SERVERS, "server"))
    )
    disk = median([one.pressure.get("io", 0.0) for one in samples])
    return Sides(system=system, work=work, client=client, servers=servers, cores=cores, disk=disk, samples=len(samples))


def _side(name: str, field: str, samples: Sequence[Sample], seconds: float, limit: float | None, cores: int) -> Side:
    """limit: cores that the side may use; None if it is not limited. cores: of the machine, which nobody exceeds."""
    user, system = _mean(samples, f"{field}_user_s"), _mean(samples, f"{field}_system_s")
    if limit is None:
        limit = 1.0 if user + system <= SEVERAL * seconds else float(cores)
    return Side(name=name, user_s=user, system_s=system, cores=min(limit, float(cores)), seconds=seconds)


def _working(sample: Sample) -> int:
    """How many servers work; 1 if that is not known."""
    spent = [
        (values.get("user_s") or 0.0) + (values.get("system_s") or 0.0)
        for name, values in sample.members.items()
        if name.startswith("server")
    ]
    most = max(spent, default=0.0)
    return sum(one >= WORKING * most for one in spent) if most else 1


def _is_try(sample: Sample) -> bool:
    """Whether it only tried whether a server accepts a cipher."""
    return sample.scenario not in ("put", "get")


def _mean(samples: Sequence[Sample], name: str) -> float:
    return sum(getattr(sample, name) or 0.0 for sample in samples) / len(samples)


def _of(side: Side) -> str:
    known = {CLIENT: "the client's processor", SERVERS: "the servers' processor"}
    return known.get(side.name, f"the machine, whose {side.name} are busy")
