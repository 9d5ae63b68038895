"""Processes and timed work on the machines of a dask.distributed cluster: `perf run CAMPAIGN --scheduler tls://...`.

A worker says by its resources what its machine is for: `--resources server=1` or `client=1`. A node is an actor that owns a
process; a load is a function that runs, and takes all its times, on one worker. Clocks are compared first, so that
intervals of several workers can be laid over each other. What happens to a worker is a row like any other: its loads end as failures.

Without a scheduler the same code runs on a cluster of its own on this machine. The cluster runs whatever it is sent: reach it over TLS, on
loopback, or in namespaces of the run's own.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from attrs import frozen

from perf.network.contract import NetworkError

Role = Literal["server", "client"]

T = TypeVar("T")

CLOCK_ROUNDS = 9
READY_S = 30.0
ENDING_S = 10.0

TLS_ADVICE = (
    "Start one with `dask scheduler --tls-ca-file CA --tls-cert CERTIFICATE --tls-key KEY`, and name the same files for "
    "this command in dask's own configuration: DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ..._TLS__CLIENT__CERT, ..._TLS__CLIENT__KEY"
)

EMBEDDED_WORKERS: Mapping[Role, int] = {"server": 2, "client": 1}
"""Workers of the cluster that is made where no scheduler is named."""


@frozen(kw_only=True)
class Machine:
    """A worker. address: of the worker, which names it. host: the address of its machine.

    offset_s: what its wall clock shows when ours shows 0, as well as half of round_trip_s lets one say.
    """

    address: str
    role: Role
    host: str
    offset_s: float
    round_trip_s: float


@frozen(kw_only=True)
class Interval:
    """A piece of work: wall-clock times of the worker that did it, and how much it was."""

    began: float
    ended: float
    amount: float


@frozen(kw_only=True)
class Load(Generic[T]):
    """What became of a load on one machine. failure: empty, or why there is no result."""

    machine: Machine
    result: T | None
    failure: str


class NodeActor:
    """A process on a worker's machine, in a directory of its own, which ends when the worker does."""

    def __init__(self, files: Mapping[str, str], command: Sequence[str]) -> None:
        """files: by path below the directory. command: `{directory}` stands for that of the node, and each of `words` for itself."""
        self.directory = tempfile.mkdtemp(prefix="grid-perf-node-")
        words = {"directory": self.directory, **self.words()}
        for name, content in files.items():
            path = Path(self.directory) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        with (Path(self.directory) / "run.log").open("wb") as log:
            # The actor's thread lives as long as the worker. Killed, the worker runs no handler of its own: the kernel ends the node.
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *(part.format(**words) for part in command)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment(),
            )

    def words(self) -> Mapping[str, str]:
        """What stands for itself in commands, as it is on the worker's machine."""
        return {}

    def environment(self) -> Mapping[str, str] | None:
        """Of the process; the worker's own if None."""
        return None

    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def read(self, name: str) -> str:
        """A file of the node; empty while there is none."""
        path = Path(self.directory) / name
        return path.read_text(errors="replace") if path.exists() else ""

    def __del__(self) -> None:
        """Nobody asks any more: the harness is gone, and the scheduler has let go of what it held."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def stop(self) -> int:
        """Ask it to end, and remove its directory; the exit status."""
        if self.running():
            self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
        return status


class Cluster:
    """The machines of a scheduler; made by `connected`."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401 - a library without types
        self._client = client
        self._nodes: list[tuple[Machine, Any]] = []

    def wait_for(self, count: int) -> None:
        """Return when that number of workers is there."""
        self._client.wait_for_workers(count, READY_S)

    def machines(self) -> list[Machine]:
        """Those that are there, servers first, with their clocks compared; NetworkError if a role has none."""
        found = []
        for address, worker in self._workers().items():
            roles: tuple[Role, ...] = ("server", "client")
            for role in roles:
                if role in worker["resources"]:
                    offset, trip = self._compare_clocks(address)
                    found.append(
                        Machine(address=address, role=role, host=worker["host"], offset_s=offset, round_trip_s=trip)
                    )
        for role in ("server", "client"):
            if not any(machine.role == role for machine in found):
                raise NetworkError(f"no worker is a {role}: start one with --resources {role}=1")
        return sorted(found, key=lambda machine: (machine.role != "server", machine.address))

    def start(self, machine: Machine, files: Mapping[str, str], command: Sequence[str]) -> Any:  # noqa: ANN401 - a library's
        """Start a process there; the actor, whose methods answer with futures."""
        return self.place(machine, NodeActor, files, command)

    def place(self, machine: Machine, kind: type, *arguments: object) -> Any:  # noqa: ANN401 - a library's
        """Make an actor there, which has a method `stop`; NetworkError if that fails."""
        made = self._client.submit(
            kind, *arguments, actor=True, workers=[machine.address], allow_other_workers=False, pure=False
        )
        done = self._outcome(machine, made)
        if done.failure:
            raise NetworkError(f"{kind.__name__} on {machine.host}: {done.failure}")
        self._nodes.append((machine, done.result))
        return done.result

    def call(self, actor: Any, method: str, *arguments: object) -> Any:  # noqa: ANN401 - a library's
        """Ask an actor: a future, also where its worker is gone."""
        try:
            return getattr(actor, method)(*arguments)
        except RuntimeError as error:
            return _Lost(error)

    def answers(self, asked: Sequence[tuple[Machine, Any]]) -> list[Load[Any]]:
        """What actors answer, in order; a worker that is gone is a failure."""
        return [self._outcome(machine, future) for machine, future in asked]

    def present(self) -> set[str]:
        """Addresses of the workers that are there now."""
        return set(self._workers())

    def event(self, name: str) -> Any:  # noqa: ANN401 - a library's
        """An event that workers see under that name."""
        import distributed

        return distributed.Event(name, client=self._client)

    def tell(self, name: str, value: float) -> None:
        """Let workers see a number under that name."""
        import distributed

        distributed.Variable(name, client=self._client).set(value)

    def run(self, machines: Sequence[Machine], work: Callable[[], T]) -> list[Load[T]]:
        """Do the work on all of these machines at the same time; one that dies or fails is a row that says so."""
        futures = [
            self._client.submit(work, workers=[machine.address], allow_other_workers=False, pure=False, retries=0)
            for machine in machines
        ]
        return [self._outcome(machine, future) for machine, future in zip(machines, futures, strict=True)]

    def stop(self) -> list[Machine]:
        """End all processes; the machines that were not there any more."""
        lost = []
        while self._nodes:
            machine, node = self._nodes.pop()
            if machine.address not in self.present():
                lost.append(machine)
                continue
            # One that does not answer must not keep the others running.
            with suppress(Exception):
                node.stop().result(READY_S)
        return lost

    def _workers(self) -> Mapping[str, Any]:
        """Every worker that is there, by its address.

        Not the client's `scheduler_info`: its answer is kept where the client's own timer puts one without any worker in between.
        """
        workers: Mapping[str, Any] = self._client.sync(self._client.scheduler.identity, n_workers=-1)["workers"]
        return workers

    def _outcome(self, machine: Machine, future: Any) -> Load[Any]:  # noqa: ANN401 - a library without types
        """A future of a worker that is gone never ends: look whether the worker is still there."""
        while True:
            try:
                return Load(machine=machine, result=future.result(1.0), failure="")
            except TimeoutError:
                if machine.address not in self.present():
                    return Load(machine=machine, result=None, failure=f"the worker at {machine.address} is gone")
            except Exception as error:  # noqa: BLE001 - whatever the work raised over there
                return Load(machine=machine, result=None, failure=f"{type(error).__name__}: {error}")

    def _compare_clocks(self, address: str) -> tuple[float, float]:
        """The offset of the worker's clock by the quickest of some questions, and how long that one took."""
        rounds = []
        for _ in range(CLOCK_ROUNDS):
            began = time.time()
            theirs = self._client.run(time.time, workers=[address])[address]
            ended = time.time()
            rounds.append((ended - began, theirs - (began + ended) / 2))
        trip, offset = min(rounds)
        return offset, trip


@frozen
class _Lost:
    """What an actor answers whose worker is gone."""

    error: RuntimeError

    def done(self) -> bool:
        return True

    def result(self, timeout: float) -> object:
        raise self.error


@contextmanager
def connected(scheduler: str = "") -> Iterator[Cluster]:
    """The cluster of the scheduler, or one of processes of our own. All processes that it started are ended with the `with`."""
    try:
        import distributed
    except ImportError:
        raise NetworkError("dask.distributed is not installed: pip install grid-storage[perf]") from None
    if scheduler:
        try:
            client = distributed.Client(scheduler, timeout=READY_S)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise NetworkError(f"no scheduler at {scheduler}: {error}. {TLS_ADVICE}") from None
        with client:
            yield from _used(client)
        return
    workers = {
        f"{role}{index}": {
            "cls": distributed.Nanny,
            "options": {"nthreads": 4, "resources": {role: 1}, "local_directory": tempfile.gettempdir()},
        }
        for role, count in EMBEDDED_WORKERS.items()
        for index in range(count)
    }
    options = {"cls": distributed.Scheduler, "options": {"port": 0, "dashboard": False, "host": "127.0.0.1"}}
    with (
        distributed.SpecCluster(scheduler=options, workers=workers, silence_logs=False) as embedded,
        distributed.Client(embedded) as client,
    ):
        client.wait_for_workers(len(workers), READY_S)
        yield from _used(client)


def _used(client: Any) -> Iterator[Cluster]:  # noqa: ANN401 - a library without types
    cluster = Cluster(client)
    try:
        yield cluster
    finally:
        cluster.stop()


def merged_rate(loads: Sequence[tuple[Machine, Sequence[Interval]]]) -> float:
    """What all machines did together in a second, over the time in which every one of them was at work; 0.0 if never.

    An interval that reaches over the edge of that time counts for the part inside it.
    """
    if not loads or not all(intervals for _, intervals in loads):
        return 0.0
    shifted = [
        [(one.began - machine.offset_s, one.ended - machine.offset_s, one.amount) for one in intervals]
        for machine, intervals in loads
    ]
    began = max(min(start for start, _, _ in intervals) for intervals in shifted)
    ended = min(max(end for _, end, _ in intervals) for intervals in shifted)
    if ended <= began:
        return 0.0
    done = sum(
        amount * max(0.0, min(end, ended) - max(start, began)) / (end - start) if end > start else 0.0
        for intervals in shifted
        for start, end, amount in intervals
    )
    return done / (ended - began)


def own_pid() -> int:
    """The worker's process, for tests and for what ends workers."""
    return os.getpid()
