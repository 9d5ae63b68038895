"""Turns a workload's operations into samples, with the processor seconds of both sides. Failures are samples too."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from attrs import asdict, evolve, field, frozen

from perf.network.site import LOOPBACK
from perf.peers.contract import Cost, Peer
from perf.peers.servers import ServerUse, server_use
from perf.records.beside import Gap, SiteFound
from perf.records.likeness import differences, key_of
from perf.records.record import Factor, Record, RecordWriter, Sample
from perf.records.work import time_of, work_of
from perf.sampling.sampler import Sampler
from perf.sampling.usage import peak_resident, reset_peaks
from perf.sampling.watch import Line, OutlierWatch
from perf.workloads.modes import Transfer

UNMEASURED = "prepare"
"""The scenario of a failed sample for what is not measured: what goes before an operation, or follows it."""


@frozen(kw_only=True)
class Begun:
    """What a record contains already. done: keys of work. orders: next order of each run. places: runs and sites that have samples.

    earlier: the record itself, if it was measured in the same environment.
    """

    done: Collection[str] = ()
    orders: Mapping[int, int] = field(factory=dict)
    places: Collection[tuple[int, str]] = ()
    earlier: Record | None = None

    @staticmethod
    def of(record: Record) -> Begun:
        """What an interrupted workload left in a record that is continued now."""
        first = record.header.environment
        same = not any(differences(first, one.environment, software=True) for one in record.resumed)
        return Begun(
            done=record.done_keys(),
            orders=record.next_orders(),
            places=record.begun_places(),
            earlier=record if same else None,
        )


class Table:
    """The samples of a workload, each written to the record at once.

    What is left of a run that an interruption cut short is a run of its own in the record: systems are compared within runs
    only, and never with those of another day.
    """

    def __init__(
        self,
        writer: RecordWriter,
        tell: Callable[[str], None],
        environment: Mapping[str, Any],
        stack: ExitStack,
        begun: Begun | None = None,
        runs: int = 1,
    ) -> None:
        """tell: receives a line per sample. environment: part of the keys. stack: ends what is running in any event. runs: planned.

        place: factors of all added samples, such as the site.
        """
        begun = begun or Begun()
        self.stack = stack
        self.samples: list[Sample] = []
        self._writer, self._tell, self._environment = writer, tell, environment
        self._watch = OutlierWatch(writer, tell, begun.earlier)
        self._done = set(begun.done)
        self._orders = Counter(begun.orders)
        self._runs, self._begun = runs, begun.places
        self._numbers: dict[tuple[int, str], int] = {}
        self._found: list[SiteFound] = []
        self._key = ""
        self.place: Mapping[str, Factor] = {}

    def once(self, run: int, system: str, factors: Mapping[str, object]) -> Iterator[AbstractContextManager[None]]:
        """Yield once for this work, unless it was completed before an interruption.

        Samples added meanwhile get its key. Do the work within the yielded context: there an error that no sample has
        becomes a failed one, and the workload goes on.
        """
        key = key_of({"run": run, "system": system, **self.place, **factors}, self._environment)
        if key in self._done:
            return
        outer, self._key = self._key, key
        yield self.attempt(run, system, factors)
        self._writer.write_end(key)
        self._key = outer

    @contextmanager
    def attempt(self, run: int, system: str, factors: Mapping[str, object], what: str = UNMEASURED) -> Iterator[None]:
        """Add a failed sample of this scenario if an error leaves the context."""
        try:
            yield
        except Exception as failure:  # noqa: BLE001 - whatever a system under test does wrong is a result
            known = {name: value if isinstance(value, int | float) else str(value) for name, value in factors.items()}
            self.add(evolve(blank(run, system, what, known, []), error=describe(failure)))

    def add(self, sample: Sample, transfers: Sequence[Line] = ()) -> None:
        """Add a sample, with the factors of the current place; tell at once if it, or a transfer within it, took unusually long.

        sample: of the planned run.
        transfers: those within it, if it has no `files`; they are compared, and not kept.
        """
        sample = evolve(sample, factors={**self.place, **sample.factors})
        run = self._number(sample.run)
        sample = evolve(sample, run=run, order=self._orders[run], key=self._key)
        self._orders[sample.run] += 1
        self.samples.append(evolve(sample, timeline=None, status=None))
        self._writer.write(sample)
        work = work_of(sample)
        shown = f"FAILED: {sample.error}"
        if sample.seconds is not None:
            shown = f"{sample.seconds:.3f} s, {work.measure(time_of(sample) or sample.seconds):.4g} {work.unit}"
        warm = " (warm-up)" if sample.warmup else ""
        self._tell(f"run {sample.run + 1} {sample.system} {work}: {shown}{warm}")
        self._watch.look(sample, transfers)

    def end(self) -> None:
        """Keep what turned out to be slow only by later samples; call it when all work is done."""
        self._watch.end()

    def found(self, run: int, site: str, found: Mapping[str, Any]) -> None:
        """Add the measurements of a site before its use, as soon as it has a sample."""
        self._found = [SiteFound(run=run, site=site, found=found)]

    def _number(self, run: int) -> int:
        """The number in the record of a planned run at the current site."""
        site = str(self.place.get("site", ""))
        if (run, site) not in self._numbers:
            number = run if (run, site) not in self._begun else max([self._runs - 1, *self._orders]) + 1
            for one in self._found:
                if one.site == site:
                    self._writer.write_site(evolve(one, run=number))
            self._found = []
            if number != run:
                name = site or str(LOOPBACK)
                self._tell(f"the rest of run {run + 1} at {name} is run {number + 1} in the record")
                self._writer.write_site(SiteFound(run=number, site=name, found={"continues run": run + 1}))
            self._numbers[run, site] = number
        return self._numbers[run, site]

    def leave_out(self, system: str, reason: str) -> None:
        """Record that a system cannot be measured here."""
        self._tell(f"{system} is left out: {reason}")
        self._writer.write_gap(Gap(system=system, work="", reason=reason))


class Meter:
    """Measures a peer's processes within a context, and what the whole machine waited for."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        members = {"client": peer.client_pids, "other": peer.other_pids}
        members |= {f"server{index}": [pid] for index, pid in enumerate(peer.server_pids)}
        self._sampler = Sampler({name: pids for name, pids in members.items() if pids or name == "client"})

    def __enter__(self) -> Meter:
        self._peer.forget()
        reset_peaks(self._peer.client_pids)
        self._clients, self._servers = _use(self._peer.client_pids), _each(self._peer.server_pids)
        self._sampler.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._sampler.__exit__(None, None, None)

    def fill(self, sample: Sample, costs: Sequence[Cost]) -> Sample:
        """Add the usage to the sample: commands as they report it, permanent processes as the kernel does.

        Also what the client itself can tell of it, should it have been slow.
        """
        self._peer.settle()
        clients, servers = _use(self._peer.client_pids), _each(self._peer.server_pids)
        staying = sum(peak_resident(pid) for pid in self._peer.client_pids)
        user = sum(cost.user_s for cost in costs) + clients.user_s - self._clients.user_s
        system = sum(cost.system_s for cost in costs) + clients.system_s - self._clients.system_s
        users = [now.user_s - before.user_s for now, before in zip(servers, self._servers, strict=True)]
        systems = [now.system_s - before.system_s for now, before in zip(servers, self._servers, strict=True)]
        watched = self._sampler.watched
        return evolve(
            sample,
            client_cpu_s=round(user + system, 4),
            client_user_s=round(user, 4),
            client_system_s=round(system, 4),
            client_peak_rss=max((cost.peak_rss for cost in costs), default=0) + staying or None,
            server_cpu_s=round(sum(users) + sum(systems), 4),
            server_user_s=round(sum(users), 4),
            server_system_s=round(sum(systems), 4),
            server_cpus_s=[round(one + two, 4) for one, two in zip(users, systems, strict=True)],
            server_peak_rss=max((one.peak_rss for one in servers), default=None),
            server_peaks_rss=[one.peak_rss for one in servers],
            pressure=watched.pressure,
            members={name: asdict(one) for name, one in watched.spent.items()},
            series=asdict(watched.series),
            timeline=self._peer.timeline(),
            status=self._peer.status,
        )


def blank(
    run: int, system: str, scenario: str, factors: Mapping[str, Factor], sizes: Sequence[int], *, parts: int = 0
) -> Sample:
    """A sample of an operation not yet done. sizes: of the files. parts: how many of them count; all if 0."""
    counted = list(sizes)[: parts or len(sizes)]
    known: dict[str, Factor] = {"size": counted[0]} if len(set(counted)) == 1 else {}
    if len(counted) > 1:
        known["count"] = len(counted)
    return Sample(
        run=run,
        order=0,
        system=system,
        client="",
        scenario=scenario,
        factors={**known, **factors},
        size=sum(counted),
        count=max(1, len(counted)),
        warmup=False,
        seconds=None,
        load=round(os.getloadavg()[0], 2),
        unix_time=round(time.time(), 3),
    )


def describe(failure: Exception) -> str:
    """The error's type and message."""
    return f"{type(failure).__name__}: {failure}"[:500]


def with_transfers(sample: Sample, sizes: Sequence[int], transfers: Sequence[Transfer]) -> Sample:
    """The sample with a line for each file."""
    return evolve(
        sample, files=[_line(sizes[one.index], one.due_s, one.started_s, one.ended_s, one.error) for one in transfers]
    )


def transfers_of(sample: Sample, cost: Cost) -> list[Line]:
    """A line for each transfer that the cost tells apart, of files of one size."""
    size = sample.size // sample.count
    return [_line(size, started, started, ended, "") for started, ended in cost.each]


def _line(size: int, due_s: float, started_s: float, ended_s: float, error: str) -> Line:
    return [size, *(round(value, 6) for value in (due_s, started_s, ended_s)), error]


def _each(pids: Sequence[int]) -> list[ServerUse]:
    return [server_use(pid) for pid in pids]


def _use(pids: Sequence[int]) -> ServerUse:
    """Combined usage of several processes: total seconds, and the greatest peak."""
    used = _each(pids)
    return ServerUse(
        user_s=sum(one.user_s for one in used),
        system_s=sum(one.system_s for one in used),
        peak_rss=max((one.peak_rss for one in used), default=0),
    )
