"""Network namespaces of a run: created, entered and removed, including those left by killed runs.

A namespace is named after the process that made it, so another run can tell whether that process still lives. Processes
in a namespace are ended, by pid, before it is removed; devices, addresses and rules disappear with it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from perf.network.contract import Host, NetworkError
from perf.network.owners import started

PREFIX = "gridperf"
NAMED = Path("/run/netns")
ENDING_S = 5.0

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def run_tool(*command: str) -> str:
    """The command's output; NetworkError with its message if it fails or is missing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise NetworkError(f"{command[0]} is not installed: `python -m perf doctor` says how to get it") from None
    if done.returncode:
        raise NetworkError(f"{' '.join(command)}: {done.stderr.strip() or f'status {done.returncode}'}")
    return done.stdout


def dies_with_starter() -> tuple[str, ...]:
    """The prefix that makes the kernel kill a command's process when the thread that started it ends."""
    if shutil.which("setpriv") is None:
        raise NetworkError("setpriv is not installed: it comes with util-linux")
    return ("setpriv", "--pdeathsig", "KILL", "--")


def owner_name(pid: int) -> str:
    """The name prefix of everything this process makes; it differs for a later process with the same pid."""
    return f"{PREFIX}-{pid}-{started(pid)}"


def remove_left_behind() -> list[str]:
    """Remove the namespaces of ended runs; return their names."""
    removed = []
    for path in sorted(NAMED.glob(f"{PREFIX}-*")) if NAMED.is_dir() else []:
        if not owner_lives(path.name):
            remove(path.name)
            removed.append(path.name)
    return removed


def owner_lives(name: str) -> bool:
    """Whether the run that made this name still runs."""
    _, pid, start, *_ = [*name.split("-"), "", ""]
    return pid.isdigit() and started(int(pid)) == start


def remove(name: str) -> None:
    """End everything in the namespace, and remove it."""
    deadline = time.monotonic() + ENDING_S
    while pids := [int(pid) for pid in run_tool("ip", "netns", "pids", name).split()]:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise NetworkError(f"processes {pids} in the namespace {name} do not end")
        time.sleep(0.01)
    run_tool("ip", "netns", "del", name)


def started_in(name: str) -> tuple[str, ...]:
    """The prefix that runs a command in the namespace."""
    return ("nsenter", f"--net={NAMED / name}", *dies_with_starter())


@contextmanager
def inside(name: str) -> Iterator[None]:
    """Put the calling thread's connections and processes into the namespace; other threads are unaffected."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        wanted = os.open(NAMED / name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _enter(wanted)
        finally:
            os.close(wanted)
        try:
            yield
        finally:
            _enter(before)
    finally:
        os.close(before)


class Namespaces:
    """The namespaces of one run, removed on exit. Entering first removes those that ended runs left behind."""

    def __init__(self, label: str) -> None:
        """label: part of each name, so a process can have several networks."""
        self._prefix = f"{owner_name(os.getpid())}-{label}"
        self._names: list[str] = []

    def __enter__(self) -> Namespaces:
        if os.geteuid() != 0:
            raise NetworkError("network namespaces need root: run this as root, or use the topology `loopback`")
        remove_left_behind()
        return self

    def __exit__(self, *details: object) -> None:
        while self._names:
            remove(self._names.pop())

    def add(self, host: str) -> str:
        """Create a host's namespace, with loopback up; return its name."""
        name = f"{self._prefix}-{host}"
        run_tool("ip", "netns", "add", name)
        self._names.append(name)
        run_tool("ip", "-n", name, "link", "set", "lo", "up")
        return name

    def batch(self, name: str, commands: Sequence[str]) -> None:
        """Run commands of `ip` in the namespace."""
        for command in commands:
            run_tool("ip", "-n", name, *command.split())

    def host(self, host: str, name: str, address: str) -> Host:
        """The host of this namespace."""
        return Host(name=host, address=address, prefix=started_in(name))


def _enter(descriptor: int) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET):
        raise NetworkError(f"cannot enter a network namespace: {os.strerror(ctypes.get_errno())}")
