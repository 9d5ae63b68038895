"""One node of a real grid as an operating system process: started, watched, stopped and killed by its pid.

It does not know the node's role; perf.processes.node_directory writes what a node runs from.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Protocol

START_S = 180.0
"""A node of ten needs 3 to 5 s to start on two idle cores; this allows for a busy machine."""

STOP_S = 60.0
"""Seconds after which a node that ignores SIGTERM is killed."""

POLL_S = 0.05

_PORTS = range(12000, 32000)
"""Below Linux's ephemeral ports, so no outgoing connection takes a port between its choice and its use."""


_LASTING: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Distinct ports on loopback on which nothing listens now."""
    chosen: list[int] = []
    held: list[socket.socket] = []
    try:
        while len(chosen) < count:
            port = random.choice(_PORTS)
            probe = socket.socket()
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                probe.close()
                continue
            held.append(probe)
            chosen.append(port)
    finally:
        for probe in held:
            probe.close()
    return chosen


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = START_S) -> None:
    """Wait until the condition holds; TimeoutError, which names `what`, if it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {timeout_s:.0f} s still waiting: {what}")
        time.sleep(POLL_S)


def child_environment() -> dict[str, str]:
    """Our environment, without variables that affect another Python or a node."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_", "GRID_"))}


def tether() -> Sequence[str]:
    """A command prefix that makes the kernel end the command with this process in any event.

    Empty without setpriv, or in a thread that may end earlier: the kernel watches the thread that started the command.
    """
    found = shutil.which("setpriv")
    lasting = threading.current_thread() is threading.main_thread() or threading.get_ident() in _LASTING
    if found is None or not lasting:
        return ()
    return found, "--pdeathsig", "KILL", "--"


def expect_lasting_thread() -> None:
    """Declare that the calling thread lives as long as its process, like the main thread."""
    _LASTING.add(threading.get_ident())


class Process(Protocol):
    """A child of this process, as subprocess.Popen presents it."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def poll(self) -> int | None:
        """Its exit code if it has ended, else None."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code; subprocess.TimeoutExpired if it does not end in time."""


def spawn(command: Sequence[str], log: BinaryIO, environment: Mapping[str, str], folder: Path | None) -> Process:
    """Start a node's command, which ends with this process. log: receives its output.

    folder: its working directory, or None.
    """
    return subprocess.Popen(
        [*tether(), *command],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=folder,
    )


class NodeProcess:
    """A node's process, with its output in `run.log` of its directory."""

    def __init__(
        self, directory: Path, command: Sequence[str], environment: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """command: runs the node in the foreground until SIGTERM. environment: additional variables."""
        self.directory = directory
        self._command = list(command)
        self._environment = dict(environment)
        self._process: Process | None = None
        self._wanted = False
        self._working_directory: Path | None = None

    @property
    def wanted(self) -> bool:
        """Whether it was started and not asked to end."""
        return self._wanted

    @property
    def name(self) -> str:
        """The directory's last component."""
        return self.directory.name

    @property
    def pid(self) -> int:
        """The pid of the running process; RuntimeError if it was never started."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """Its output of all runs so far."""
        path = self.directory / "run.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def run_with(self, command: Sequence[str], working_directory: Path | None = None) -> None:
        """Use this command from the next start on, in the given working directory or ours."""
        self._command = list(command)
        self._working_directory = working_directory

    def start(self) -> None:
        """Start the process, which becomes ready later."""
        if self.running:
            raise RuntimeError(f"{self.name} runs already")
        self._wanted = True
        with (self.directory / "run.log").open("ab") as log:
            environment = {**child_environment(), **self._environment}
            self._process = spawn(self._command, log, environment, self._working_directory)

    def expect_running(self) -> None:
        """Raise RuntimeError with the end of its log if it has ended."""
        if not self.running:
            raise RuntimeError(f"{self.name} ended: ...{self.log[-2000:]}")

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until the condition holds; RuntimeError if the process ends, TimeoutError if it takes too long."""

        def holds() -> bool:
            self.expect_running()
            return condition()

        wait_until(holds, f"{self.name}: {what}")

    def terminate(self) -> None:
        """Ask it to end, without waiting."""
        self._wanted = False
        if self.running:
            self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it, as a power failure would."""
        self._wanted = False
        if self.running:
            self._signal(signal.SIGKILL)
            self._reap()

    def freeze(self) -> None:
        """Freeze it: its connections stay open, but it answers nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it continue."""
        self._signal(signal.SIGCONT)

    def wait(self, timeout_s: float = STOP_S) -> int:
        """Its exit code (negative: a signal); kills it if it does not end in time."""
        if self._process is None:
            return 0
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._reap()

    def stop(self) -> int:
        """Ask it to end, and return its exit code."""
        self.terminate()
        return self.wait()

    def _signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def _reap(self) -> int:
        assert self._process is not None
        return self._process.wait()


def stop_all(nodes: Sequence[NodeProcess]) -> None:
    """Ask all of them to end, then wait for each."""
    for node in nodes:
        node.terminate()
    for node in nodes:
        node.wait()
