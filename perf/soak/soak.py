"""The soak: a real grid, a gateway and a client process, used randomly for a long time while servers are killed and
frozen.

It stores and reads immutable files, and creates, changes and reads mutable files and directories, over every transport.
It fails if a byte that was read is wrong or older than what was acknowledged (perf.soak.mutable_plan), if an operation
fails although enough servers were present, if anything takes too long, if a process prints a traceback, if an idle
process's memory, descriptors or objects grow over its life, or if a storage node ever holds too much (perf.soak.held).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from attrs import field, frozen

from grid.allocator import KEPT_MEMORY
from grid.caps import ChkCap, parse_cap
from grid.codec import base32
from grid.wire.http.client.connection import IDLE_S, TICK_S
from grid.wire.http.client.pool import CONNECTIONS_PER_SERVER
from perf.processes.clients import GridGateway
from perf.processes.node_directory import Kind, NodeSettings, Transport, make_node, start_node
from perf.processes.node_process import child_environment
from perf.processes.process_grid import ClientSettings, ProcessGrid
from perf.sampling.growth import Allowance
from perf.sampling.usage import cpu_seconds, peak_resident, resident
from perf.soak.durations import Durations
from perf.soak.held import Holdings, Process
from perf.soak.plan import LARGEST, Disturbed, SoakPlan, StoredFile
from perf.soak.soak_process import ROOT, ClientProcess, SoakError

SERVERS = 10
MORTAL = range(5, SERVERS)
"""The servers that may be killed; the others live throughout, which reveals growth."""

CLIENTS: tuple[Transport, ...] = ("foolscap", "http", "auto")
"""The transports, with one client each, all in one process."""

NOT_SHOWN = frozenset(("cap", "key", "allowed", "version", "layer", "to"))
"""Omitted from an operation's record: secrets, and what the seed reproduces."""

SETTLE_S = IDLE_S + 2 * TICK_S
"""Seconds after which every connection that was idle all the time is closed."""

SAMPLE_S = 5.0
ALLOWED = {
    "rss": Allowance(amount=KEPT_MEMORY, part=0.1),
    "descriptors": Allowance(amount=SERVERS * CONNECTIONS_PER_SERVER / 2),
    "objects": Allowance(amount=3000, part=0.02),
    "timers": Allowance(amount=SERVERS * CONNECTIONS_PER_SERVER / 2),
}
"""How much later samples of a process may exceed earlier ones: memory kept by the allocator, and connections that the
client keeps after busy times, each with a timer.
"""


@frozen(kw_only=True)
class SoakSettings:
    """hostile: number of connections that are silent, incomplete, or read slowly or never. minutes: the duration.

    load: cores that client and servers may use together, averaged. batches: a lower limit, if set. settle_s: seconds of
    idleness before the final samples of held resources.
    """

    minutes: float = 30.0
    load: float = 0.25
    seed: int = 0
    batches: int | None = None
    largest: int = LARGEST
    kept_bytes: int = 200_000_000
    hostile: int = 0
    settle_s: float = SETTLE_S


WRONG = ("failed operation", "wrong bytes", "lost write")
"""Counts reported even if zero."""


@frozen
class Outcome:
    """counts: of operations and of servers' failures. defects: everything that was wrong.

    figures: a line for each kind of operation, and for each process's resources.
    """

    counts: Counter[str]
    defects: list[str]
    figures: list[str] = field(factory=list)

    def __str__(self) -> str:
        done = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()) if what not in WRONG)
        wrong = ", ".join(f"{self.counts[what]} {what}" for what in WRONG)
        verdict = [f"DEFECT: {defect}" for defect in self.defects] or ["no defect"]
        return "\n".join([done, wrong, *self.figures, *verdict])


class Soak:
    """One run: absent servers, results, and costs."""

    def __init__(self, grid: ProcessGrid, client: ClientProcess, settings: SoakSettings, record: TextIO) -> None:
        self._grid = grid
        self._client = client
        self._settings = settings
        self._record = record
        self._plan = SoakPlan(
            settings.seed, clients=len(CLIENTS), mortal=MORTAL, largest=settings.largest, kept_bytes=settings.kept_bytes
        )
        self._away: dict[int, str] = {}
        self._counts: Counter[str] = Counter()
        self._defects: list[str] = []
        self._held = Holdings(ALLOWED)
        self._began = time.monotonic()
        self._sampled_at = float("-inf")
        self._durations = Durations()
        self._disturbed = False

    def run(self, tell: Callable[[str], None], make_peace: Callable[[], None]) -> Outcome:
        """Continue until the time is over or continuing is impossible. make_peace: ends the hostile connections."""
        used, batch = 0.0, 0
        while self._goes_on(batch):
            batch += 1
            self._bring_back()
            before = self._cpu()
            if not self._try(self._play):
                break
            used += sum(max(0.0, seconds - before.get(pid, 0.0)) for pid, seconds in self._cpu().items())
            if self._elapsed() - self._sampled_at >= SAMPLE_S:
                self._sample()
                tell(f"{self._elapsed():.0f} s: {sum(self._counts.values())} events, {len(self._defects)} defects")
            time.sleep(max(0.0, min(10.0, used / self._settings.load - self._elapsed())))
        else:
            self._try(self._look_at_all)
        make_peace()
        time.sleep(self._settings.settle_s)
        self._try(self._sample)
        self._read_logs()
        for words in [*self._durations.over_their_bounds(), *self._held.defects()]:
            self._defect(words)
        return Outcome(self._counts, self._defects, [*self._durations.lines(), *self._held.lines()])

    def _try(self, work: Callable[[], None]) -> bool:
        """Whether the run can continue."""
        try:
            work()
        except SoakError as error:
            self._defect(str(error))
            return False
        return True

    def _look_at_all(self) -> None:
        """Read every file and mutable object again with all servers present: everything acknowledged must be there."""
        self._bring_back(all_of_them=True)
        self._disturbed = False
        for operation in [*self._plan.last_look(), *self._plan.mutables.last_look(len(CLIENTS))]:
            self._client.ask([operation])
            (answer,) = self._client.answer()
            self._judge_answer(operation, answer)
            self._counts["lost write"] += not answer.keys().isdisjoint(("error", "wrong"))

    def _goes_on(self, batch: int) -> bool:
        limit = self._settings.batches
        return batch < limit if limit is not None else self._elapsed() < self._settings.minutes * 60

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _play(self) -> None:
        operations = self._plan.batch()
        disturbed = self._plan.disturbance(len(self._away))
        self._client.ask(operations)
        self._disturbed = disturbed is not None
        if disturbed is not None and disturbed.server not in self._away:
            time.sleep(disturbed.after_s)
            self._take_away(disturbed)
        for operation, answer in zip(operations, self._client.answer(), strict=True):
            self._judge_answer(operation, answer)

    def _judge_answer(self, operation: dict[str, Any], answer: dict[str, Any]) -> None:
        shown = {name: value for name, value in operation.items() if name not in NOT_SHOWN}
        self._write(what="operation", away=list(self._away), **shown, **{n: v for n, v in answer.items() if n != "cap"})
        self._counts[operation["op"]] += 1
        self._durations.note(operation, answer.get("seconds", 0.0), disturbed=bool(self._away or self._disturbed))
        if operation["op"].startswith("mutable"):
            self._counts[f"{operation['kind']} operation"] += 1
            wrong = self._plan.mutables.ended(operation, answer)
            if wrong:
                self._blame(shown, answer, wrong)
            return
        for wrong in ("error", "wrong"):
            if wrong in answer:
                self._blame(shown, answer, answer[wrong])
        if "cap" in answer:
            for file in self._plan.stored(operation, answer["cap"]):
                self._forget(file)

    def _blame(self, shown: dict[str, Any], answer: dict[str, Any], words: str) -> None:
        self._counts["wrong bytes" if "wrong" in answer else "failed operation"] += 1
        self._defect(f"{shown} with {self._away or 'nobody'} away: {words}")

    def _take_away(self, disturbed: Disturbed) -> None:
        node = self._grid.storage[disturbed.server]
        if disturbed.how == "kill":
            node.kill()
        else:
            node.freeze()
        self._away[disturbed.server] = disturbed.how
        self._counts[disturbed.how] += 1
        self._write(what=disturbed.how, server=disturbed.server)

    def _bring_back(self, *, all_of_them: bool = False) -> None:
        """Let absent servers continue after a while; a killed one counts again once it is ready."""
        for index, how in list(self._away.items()):
            if not (all_of_them or self._plan.returns()):
                continue
            node = self._grid.storage[index]
            if how == "freeze":
                node.thaw()
            else:
                start_node(node)
                self._counts["restart"] += 1
            del self._away[index]

    def _forget(self, file: StoredFile) -> None:
        """Delete a file's shares, like an operator whose disk is full."""
        cap = parse_cap(file.cap)
        if isinstance(cap, ChkCap):
            name = base32.encode(cap.storage_index)
            for node in self._grid.storage:
                shutil.rmtree(node.directory / "storage" / "shares" / name[:2] / name, ignore_errors=True)

    def _processes(self) -> list[Process]:
        nodes = [
            Process(name=node.name, pid=node.pid, is_node=node in self._grid.storage)
            for node in self._grid.nodes
            if node.running
        ]
        return [*nodes, Process(name="client", pid=self._client.pid)]

    def _cpu(self) -> dict[int, float]:
        return {process.pid: cpu_seconds([process.pid]) for process in self._processes()}

    def _sample(self) -> None:
        self._client.ask([{"op": "holdings"}])
        (holdings,) = self._client.answer()
        now = self._sampled_at = self._elapsed()
        for process in self._processes():
            pid = process.pid
            held: dict[str, float] = {"rss": resident([pid]), "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}
            if process.name == "client":
                held |= {what: holdings[what] for what in ("objects", "timers")}
            self._write(what="sample", process=process.name, pid=pid, **held)
            self._held.note(process, now, held, peak_resident(pid))

    def _read_logs(self) -> None:
        for log in sorted(self._grid.root.glob("*/run.log")):
            text = log.read_text(errors="replace")
            at = text.find("Traceback")
            if at >= 0:
                self._defect(f"{log.parent.name} printed: {text[max(0, at - 300) : at + 1500]}")

    def _defect(self, words: str) -> None:
        self._defects.append(words)
        self._write(what="defect", words=words)

    def _write(self, **line: object) -> None:
        self._record.write(json.dumps({"at": round(self._elapsed(), 3), **line}, separators=(",", ":")) + "\n")
        self._record.flush()


def soak(settings: SoakSettings, directory: Path, record: TextIO, tell: Callable[[str], None]) -> Outcome:
    """Start a grid below the directory, soak it, and stop it. record: receives one JSON line per event."""
    storage: list[Kind] = ["grid"] * SERVERS
    with ProcessGrid(directory / "grid", introducer="grid", storage=storage, force_foolscap=False) as grid:
        gateway = grid.add_client(ClientSettings(kind="grid", gateway=True))
        assert isinstance(gateway, GridGateway)
        client = ClientProcess(make_clients(grid), SERVERS, gateway.url, grid.root / CLIENTS[0] / "run.log")
        hostile = None
        try:
            client.answer()
            hostile = start_hostile(grid, gateway, settings)

            def make_peace() -> None:
                if hostile is not None:
                    tell(f"hostile connections: {hostile.communicate(timeout=30)[0].decode().strip()}")

            return Soak(grid, client, settings, record).run(tell, make_peace)
        finally:
            if hostile is not None and hostile.poll() is None:
                hostile.kill()
                hostile.communicate()
            client.stop()
            for node in grid.storage:
                if node.running:
                    node.thaw()


def start_hostile(grid: ProcessGrid, gateway: GridGateway, settings: SoakSettings) -> subprocess.Popen[bytes] | None:
    """Start hostile connections, if configured; they end when their process's stdin does."""
    if not settings.hostile:
        return None
    command = [
        sys.executable,
        "-m",
        "perf.systems.hostile_client",
        str(settings.minutes * 60 + 600),
        str(settings.hostile),
    ]
    return subprocess.Popen(
        [*command, gateway.url, *(str(node.directory) for node in grid.storage)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=child_environment(),
    )


def make_clients(grid: ProcessGrid) -> list[Path]:
    """Create a client directory for each transport, with the same name."""
    for transport in CLIENTS:
        settings = NodeSettings(
            kind="grid",
            role="client",
            introducer_furl=grid.introducer_furl,
            force_foolscap=False,
            transport=transport,
        )
        make_node(grid.root / transport, settings)
    return [grid.root / transport for transport in CLIENTS]
