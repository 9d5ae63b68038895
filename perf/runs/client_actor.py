"""A grid client on a separate machine: an actor on a dask.distributed worker that runs and times cells."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil
from attrs import evolve

from perf.campaigns.campaign import Cell, Encoding
from perf.network.owners import owned_prefix, remove_left_behind
from perf.network.workers import NodeActor
from perf.processes.node_directory import grid_executable
from perf.processes.node_process import child_environment, expect_lasting_thread
from perf.records.record import Sample
from perf.runs.alone import Alone
from perf.runs.scenarios import Stage
from perf.sampling.freezer import with_descendants
from perf.sampling.usage import cpu_seconds, peak_resident
from perf.systems.peers import make_system
from perf.systems.processes import ProcessSystem

MEETING_S = 600.0
"""Seconds that a client waits for the others to be ready."""

TURN_S = 2.0
"""Seconds after which a waiting client checks whether the run is over."""

T = TypeVar("T")


class GridNodeActor(NodeActor):
    """A grid node on a worker's machine, run by that machine's Grid or Tahoe-LAFS."""

    def words(self) -> Mapping[str, str]:
        """The programs: `{grid}` and `{tahoe}`."""
        return {"grid": grid_executable(), "tahoe": os.environ.get("GRID_TAHOE", "tahoe")}

    def environment(self) -> Mapping[str, str]:
        """The environment of every node in campaigns."""
        return child_environment()

    def usage(self) -> tuple[float, int]:
        """Processor seconds so far, and peak memory in bytes."""
        return cpu_seconds([self.pid()]), peak_resident(self.pid())

    def signal(self, number: int) -> None:
        """Send it a signal: SIGSTOP freezes it, SIGCONT lets it continue."""
        _signal([self.pid()], number)


class Meeting(Alone):
    """A system that waits before each timed operation until all clients are ready for it.

    began: wall-clock time of the first operation since it was last cleared.
    """

    def __init__(self, system: ProcessSystem, meet: Callable[[], None]) -> None:
        super().__init__(system, [], None)
        self._meet = meet
        self.began: list[float] = []

    def _watch(self, operation: Callable[[], T]) -> Any:  # noqa: ANN401 - as its base
        self._meet()
        self.began.append(time.time())
        return super()._watch(operation)


class ClientActor:
    """The clients of one system on one machine."""

    def __init__(self, label: str, furl: str, servers: int, encodings: Sequence[Encoding]) -> None:
        """furl: of the introducer. Waits until its clients are connected to all servers."""
        expect_lasting_thread()
        remove_left_behind([Path(tempfile.gettempdir())])
        self._root = Path(tempfile.mkdtemp(prefix=owned_prefix("client")))
        self._system = make_system(label)
        assert isinstance(self._system, ProcessSystem)
        self._alone = Meeting(self._system, self._meet)
        files = self._root / "files"
        files.mkdir()
        self._stage = Stage({label: self._system}, {label: self._alone}, files)
        self._meetings: tuple[str, int, float] = ("", 0, 0.0)
        try:
            self._system.join(self._root / "grid", furl, servers, encodings)
        except BaseException:
            self.stop()
            raise

    def play(self, cell: Cell, meetings: str, offset_s: float) -> list[tuple[float, Sample]]:
        """Run a cell; return its samples, each with this machine's clock at the start of its operation.

        meetings: prefix of the names by which the harness and its clients synchronize. offset_s: of this machine's
        clock.
        """
        expect_lasting_thread()
        self._meetings = (meetings, 0, offset_s)
        played = []
        self._alone.began.clear()
        for sample in self._stage.play(cell):
            began = self._alone.began[0] if self._alone.began else time.time()
            # A function that fetches the status page cannot leave this machine.
            played.append((began, evolve(sample, status=None)))
            self._alone.began.clear()
        return played

    def signal(self, number: int) -> None:
        """Signal its processes: SIGSTOP freezes them, SIGCONT lets them continue."""
        _signal([member.pid for member in self._system.members()], number)

    def stop(self) -> None:
        """End its clients, and remove their files."""
        self._system.stop()
        shutil.rmtree(self._root, ignore_errors=True)

    def __del__(self) -> None:
        self.stop()

    def _meet(self) -> None:
        """Report that this client is ready, and wait for the common start. TimeoutError if the run is over first."""
        import distributed

        prefix, number, offset_s = self._meetings
        self._meetings = (prefix, number + 1, offset_s)
        client = distributed.get_client()
        address = distributed.get_worker().address
        distributed.Event(ready_name(prefix, number, address), client=client).set()
        begin, over = distributed.Variable(begin_name(prefix, number), client=client), over_name(prefix)
        for _ in range(round(MEETING_S / TURN_S)):
            try:
                time.sleep(max(0.0, begin.get(timeout=TURN_S) + offset_s - time.time()))
            except TimeoutError:
                if distributed.Event(over, client=client).is_set():
                    break
            else:
                return
        raise TimeoutError("the run ended, or other clients did not get ready")


def ready_name(prefix: str, number: int, address: str) -> str:
    """The event that the client at this address is ready for the operation of this number."""
    return f"{prefix}/{number}/ready/{address}"


def begin_name(prefix: str, number: int) -> str:
    """The variable with the start of the operation of this number, on the harness's clock."""
    return f"{prefix}/{number}/begin"


def over_name(prefix: str) -> str:
    """The event that no further operation begins."""
    return f"{prefix}/over"


def _signal(pids: Sequence[int], number: int) -> None:
    for process in with_descendants(pids):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.Signals(number))
