"""Runs processes and timed work on a dask.distributed cluster: `perf run CAMPAIGN --scheduler tls://...`.

A worker's resources declare its machine's role: `--resources server=1` or `client=1`. A node is an actor that owns a
process; a load is a function that runs on one worker and takes all its times there. Clocks are compared first, so
intervals of several workers can be aligned. If a worker dies, its loads are recorded as failures.

Without a scheduler, the same code runs on a private cluster on this machine. A cluster executes whatever it is sent:
reach it over TLS, on loopback, or in the run's own namespaces.
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
from perf.network.owners import owned_prefix, remove_left_behind

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
"""Workers of the private cluster."""


@frozen(kw_only=True)
class Machine:
    """A worker. address: of the worker, which identifies it. host: the address of its machine.

    offset_s: its wall clock minus ours, accurate to half of round_trip_s.
    """

    address: str
    role: Role
    host: str
    offset_s: float
    round_trip_s: float


@frozen(kw_only=True)
class Interval:
    """A piece of work: wall-clock times on its worker, and its amount."""

    began: float
    ended: float
    amount: float


@frozen(kw_only=True)
class Load(Generic[T]):
    """The result of a load on one machine. failure: empty, or why there is no result."""

    machine: Machine
    result: T | None
    failure: str


class NodeActor:
    """A process on a worker's machine in its own directory, which ends when the worker does."""

    def __init__(self, files: Mapping[str, str], command: Sequence[str]) -> None:
        """files: contents by path below the directory.

        command: `{directory}` expands to the node's directory, and each of `words` to its value.
        """
        remove_left_behind([Path(tempfile.gettempdir())])
        self.directory = tempfile.mkdtemp(prefix=owned_prefix("node"))
        words = {"directory": self.directory, **self.words()}
        for name, content in files.items():
            path = Path(self.directory) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        with (Path(self.directory) / "run.log").open("wb") as log:
            # The actor's thread lives as long as the worker. If the worker is killed, no handler of its own runs: the
            # kernel ends the node.
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *(part.format(**words) for part in command)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment(),
            )

    def words(self) -> Mapping[str, str]:
        """Values to expand in commands, as they are on the worker's machine."""
        return {}

    def environment(self) -> Mapping[str, str] | None:
        """The process's environment; None for the worker's own."""
        return None

    def pid(self) -> int:
        """The process's pid."""
        return self._process.pid

    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def read(self, name: str) -> str:
        """A file of the node; empty if it does not exist."""
        path = Path(self.directory) / name
        return path.read_text(errors="replace") if path.exists() else ""

    def __del__(self) -> None:
        """Clean up when the harness is gone and the scheduler drops the actor."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def stop(self) -> int:
        """Stop the process, remove its directory, and return the exit code."""
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
    """The machines of a scheduler; created by `connected`."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401 - a library without types
        self._client = client
        self._nodes: list[tuple[Machine, Any]] = []

    def wait_for(self, count: int) -> None:
        """Wait until this many workers are present."""
        self._client.wait_for_workers(count, READY_S)

    def machines(self) -> list[Machine]:
        """The present machines, servers first, with their clocks compared; NetworkError if a role has none."""
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
        """Start a process there; return the actor, whose methods return futures."""
        return self.place(machine, NodeActor, files, command)

    def place(self, machine: Machine, kind: type, *arguments: object) -> Any:  # noqa: ANN401 - a library's
        """Create an actor there, which must have a method `stop`; NetworkError if that fails."""
        made = self._client.submit(
            kind, *arguments, actor=True, workers=[machine.address], allow_other_workers=False, pure=False
        )
        done = self._outcome(machine, made)
        if done.failure:
            raise NetworkError(f"{kind.__name__} on {machine.host}: {done.failure}")
        self._nodes.append((machine, done.result))
        return done.result

    def call(self, actor: Any, method: str, *arguments: object) -> Any:  # noqa: ANN401 - a library's
        """Call an actor's method; return a future, even if its worker is gone."""
        try:
            return getattr(actor, method)(*arguments)
        except RuntimeError as error:
            return _Lost(error)

    def answers(self, asked: Sequence[tuple[Machine, Any]]) -> list[Load[Any]]:
        """The results of actors, in order; a worker that is gone is a failure."""
        return [self._outcome(machine, future) for machine, future in asked]

    def present(self) -> set[str]:
        """Addresses of the workers that are present now."""
        return set(self._workers())

    def event(self, name: str) -> Any:  # noqa: ANN401 - a library's
        """An event that workers see under this name."""
        import distributed

        return distributed.Event(name, client=self._client)

    def tell(self, name: str, value: float) -> None:
        """Publish a number to workers under this name."""
        import distributed

        distributed.Variable(name, client=self._client).set(value)

    def run(self, machines: Sequence[Machine], work: Callable[[], T]) -> list[Load[T]]:
        """Run the work on all of these machines at once; a failure is part of the results."""
        futures = [
            self._client.submit(work, workers=[machine.address], allow_other_workers=False, pure=False, retries=0)
            for machine in machines
        ]
        return [self._outcome(machine, future) for machine, future in zip(machines, futures, strict=True)]

    def stop(self) -> list[Machine]:
        """End all processes; return the machines that were no longer present."""
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
        """All present workers by address.

        Not the client's `scheduler_info`, because the client's own timer can overwrite its cached answer with one
        without workers.
        """
        workers: Mapping[str, Any] = self._client.sync(self._client.scheduler.identity, n_workers=-1)["workers"]
        return workers

    def _outcome(self, machine: Machine, future: Any) -> Load[Any]:  # noqa: ANN401 - a library without types
        """A future of a lost worker never ends, so check whether the worker is still present."""
        while True:
            try:
                return Load(machine=machine, result=future.result(1.0), failure="")
            except TimeoutError:
                if machine.address not in self.present():
                    return Load(machine=machine, result=None, failure=f"the worker at {machine.address} is gone")
            except Exception as error:  # noqa: BLE001 - whatever the work raised over there
                return Load(machine=machine, result=None, failure=f"{type(error).__name__}: {error}")

    def _compare_clocks(self, address: str) -> tuple[float, float]:
        """The offset of the worker's clock from the fastest of several requests, and that request's duration."""
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
    """Stands in for the result of an actor whose worker is gone."""

    error: RuntimeError

    def done(self) -> bool:
        return True

    def result(self, timeout: float) -> object:
        raise self.error


@contextmanager
def connected(scheduler: str = "") -> Iterator[Cluster]:
    """The scheduler's cluster, or a private one of local processes. All processes it started end with the context."""
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
    """The combined rate of all machines during the time in which every one was working; 0.0 if there was none.

    An interval that extends beyond that time counts proportionally.
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
    """The worker's pid, for tests and for whatever ends workers."""
    return os.getpid()
