"""Freezes processes that are not being measured, while their connections stay open. Linux only.

Uses the freezer control group if available, which includes child processes; otherwise sends SIGSTOP to every process
and its descendants. A frozen process in a group cannot even be killed, so groups carry their maker's pid and start
time, and the next command thaws and removes groups whose maker is gone, with all that killed ones left.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import psutil

from perf.network.owners import remove_left_behind, started

FREEZER = Path("/sys/fs/cgroup/freezer")
PREFIX = "grid-perf-"
SETTLED_S = 10.0
"""Seconds to wait: a process stops only after its current write to a disk ends."""
POLL_S = 0.001


class FreezeError(Exception):
    """Processes did not stop in time."""


class Freezer(Protocol):
    """Stops processes and lets them continue."""

    @property
    def name(self) -> str:
        """Its name for the record."""

    def freeze(self, pids: Collection[int]) -> None:
        """Freeze these processes and their descendants, and wait until none runs."""

    def thaw(self) -> None:
        """Let all frozen processes continue."""

    def close(self) -> None:
        """Thaw everything, and clean up."""


class SignalFreezer:
    """SIGSTOP and SIGCONT."""

    name = "SIGSTOP"

    def __init__(self) -> None:
        self._stopped: list[psutil.Process] = []

    def freeze(self, pids: Collection[int]) -> None:
        """Freeze parents first, so no child starts unseen."""
        for process in with_descendants(pids):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGSTOP)
                self._stopped.append(process)
        _wait(lambda: all(_is_stopped(process) for process in self._stopped), "SIGSTOP")

    def thaw(self) -> None:
        """Thaw children first, so none waits for a parent that has continued without it."""
        while self._stopped:
            with suppress(psutil.NoSuchProcess):
                self._stopped.pop().send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Nothing remains to clean up."""
        self.thaw()


class GroupFreezer:
    """The freezer of control groups, version 1."""

    name = "cgroup freezer"

    def __init__(self, hierarchy: Path = FREEZER) -> None:
        """OSError if this process may not create groups there."""
        thaw_left_behind(hierarchy)
        self._hierarchy = hierarchy
        self._group = hierarchy / f"{PREFIX}{os.getpid()}-{started(os.getpid())}-{id(self):x}"
        self._group.mkdir()

    def freeze(self, pids: Collection[int]) -> None:
        """Move them into the group, and freeze it as a whole."""
        for process in with_descendants(pids):
            with suppress(ProcessLookupError):
                _write(self._group / "cgroup.procs", str(process.pid))
        _write(self._group / "freezer.state", "FROZEN")
        _wait(lambda: (self._group / "freezer.state").read_text().strip() == "FROZEN", str(self._group))

    def thaw(self) -> None:
        """Thaw them, and move them out of the group, since others may be frozen next."""
        _write(self._group / "freezer.state", "THAWED")
        _wait(lambda: (self._group / "freezer.state").read_text().strip() == "THAWED", str(self._group))
        _release(self._group)

    def close(self) -> None:
        """Thaw everything, and remove the group."""
        if self._group.exists():
            self.thaw()
            self._group.rmdir()


def make_freezer() -> Freezer:
    """The best freezer that this process may use."""
    try:
        return GroupFreezer()
    except OSError:
        return SignalFreezer()


@contextmanager
def frozen(freezer: Freezer, pids: Collection[int]) -> Iterator[None]:
    """Freeze these processes within the context."""
    try:
        if pids:
            freezer.freeze(pids)
        yield
    finally:
        if pids:
            freezer.thaw()


def with_descendants(pids: Collection[int]) -> Sequence[psutil.Process]:
    """The processes and all their descendants, parents first, without those that have ended."""
    found: dict[int, psutil.Process] = {}
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            for one in [process, *process.children(recursive=True)]:
                found.setdefault(one.pid, one)
    return list(found.values())


def _is_stopped(process: psutil.Process) -> bool:
    """Whether all its threads are stopped, or it has ended."""
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


def thaw_left_behind(hierarchy: Path = FREEZER) -> None:
    """Thaw and remove groups whose maker is gone. OSError if this process may not."""
    for group in hierarchy.glob(f"{PREFIX}*"):
        if not _maker_lives(group.name):
            with suppress(FileNotFoundError):  # Another run does the same.
                _write(group / "freezer.state", "THAWED")
                _release(group)
            with suppress(OSError):
                group.rmdir()


def clean_up(directory: Path | None, tell: Callable[[str], None]) -> None:
    """Thaw what killed commands left frozen, so that it ends, and remove their directories, also below this one."""
    with suppress(OSError):  # Only those who may thaw others' processes can have frozen them like this.
        thaw_left_behind()
    for path in remove_left_behind([Path(tempfile.gettempdir()), *([directory] if directory is not None else [])]):
        tell(f"a killed run left {path}, which is removed")


def _maker_lives(name: str) -> bool:
    """Whether the process that made the group of this name runs. Groups of earlier versions name no start time."""
    pid, *rest = name.removeprefix(PREFIX).split("-")
    if not Path(f"/proc/{pid}").exists():
        return False
    return len(rest) < 2 or started(int(pid)) in ("", rest[0])


def _release(group: Path) -> None:
    """Move every process of the group to its parent group."""
    for pid in (group / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            _write(group.parent / "cgroup.procs", pid)


def _write(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text)
