"""Freezing processes that are not being measured: nothing of them runs, and their connections stay open. Linux only.

By the freezer of control groups where there is one, which takes what a process started along, and else by SIGSTOP to every
process and its descendants. A frozen process in a group cannot even be killed, so groups carry the pid of their maker, and
the next one thaws and removes those whose maker has gone.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import psutil

FREEZER = Path("/sys/fs/cgroup/freezer")
PREFIX = "grid-perf-"
SETTLED_S = 10.0
"""A process in the middle of a write to a disk stops when that has ended."""
POLL_S = 0.001


class FreezeError(Exception):
    """Processes did not stop in time."""


class Freezer(Protocol):
    """Stops processes, and lets them go on."""

    @property
    def name(self) -> str:
        """For the record."""

    def freeze(self, pids: Collection[int]) -> None:
        """Return when none of them, nor anything that they started, runs any more."""

    def thaw(self) -> None:
        """Let all that is frozen go on."""

    def close(self) -> None:
        """Thaw, and leave nothing behind."""


class SignalFreezer:
    """SIGSTOP and SIGCONT."""

    name = "SIGSTOP"

    def __init__(self) -> None:
        self._stopped: list[psutil.Process] = []

    def freeze(self, pids: Collection[int]) -> None:
        """Parents first, so that no child is started unseen."""
        for process in with_descendants(pids):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGSTOP)
                self._stopped.append(process)
        _wait(lambda: all(_is_stopped(process) for process in self._stopped), "SIGSTOP")

    def thaw(self) -> None:
        """Children first: none waits for a parent that has gone on without it."""
        while self._stopped:
            with suppress(psutil.NoSuchProcess):
                self._stopped.pop().send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Nothing stays behind."""
        self.thaw()


class GroupFreezer:
    """The freezer of control groups, version 1."""

    name = "cgroup freezer"

    def __init__(self, hierarchy: Path = FREEZER) -> None:
        """OSError if this process may not make groups there."""
        _sweep(hierarchy)
        self._hierarchy = hierarchy
        self._group = hierarchy / f"{PREFIX}{os.getpid()}-{id(self):x}"
        self._group.mkdir()

    def freeze(self, pids: Collection[int]) -> None:
        """Take them into the group, and freeze it as a whole."""
        for process in with_descendants(pids):
            with suppress(ProcessLookupError):
                _write(self._group / "cgroup.procs", str(process.pid))
        _write(self._group / "freezer.state", "FROZEN")
        _wait(lambda: (self._group / "freezer.state").read_text().strip() == "FROZEN", str(self._group))

    def thaw(self) -> None:
        """Let them go on, outside the group: the next to be frozen may be others."""
        _write(self._group / "freezer.state", "THAWED")
        _wait(lambda: (self._group / "freezer.state").read_text().strip() == "THAWED", str(self._group))
        _release(self._group)

    def close(self) -> None:
        """Thaw, and remove the group."""
        if self._group.exists():
            self.thaw()
            self._group.rmdir()


def make_freezer() -> Freezer:
    """The best that this process is allowed."""
    try:
        return GroupFreezer()
    except OSError:
        return SignalFreezer()


@contextmanager
def frozen(freezer: Freezer, pids: Collection[int]) -> Iterator[None]:
    """Inside, these processes do not run."""
    try:
        if pids:
            freezer.freeze(pids)
        yield
    finally:
        if pids:
            freezer.thaw()


def with_descendants(pids: Collection[int]) -> Sequence[psutil.Process]:
    """The processes and all that they started, parents first; without those that have ended."""
    found: dict[int, psutil.Process] = {}
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            for one in [process, *process.children(recursive=True)]:
                found.setdefault(one.pid, one)
    return list(found.values())


def _is_stopped(process: psutil.Process) -> bool:
    """Whether every thread of it is, or it has ended."""
    try:
        tasks = list(Path(f"/proc/{process.pid}/task").iterdir())
        states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return all(state in "TtZX" for state in states)


def _wait(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SETTLED_S
    while not done():
        if time.monotonic() > deadline:
            raise FreezeError(f"{what}: processes did not change their state within {SETTLED_S:.0f} s")
        time.sleep(POLL_S)


def _sweep(hierarchy: Path) -> None:
    """Thaw and remove groups whose maker has gone."""
    for group in hierarchy.glob(f"{PREFIX}*"):
        maker = group.name.removeprefix(PREFIX).partition("-")[0]
        if not Path(f"/proc/{maker}").exists():
            _write(group / "freezer.state", "THAWED")
            _release(group)
            with suppress(OSError):
                group.rmdir()


def _release(group: Path) -> None:
    """Move every process of the group to the one above it."""
    for pid in (group / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            _write(group.parent / "cgroup.procs", pid)


def _write(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text)
