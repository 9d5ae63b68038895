"""Records which process runs a node, in 1.20's file `running.process`.

It holds the pid, a space, and the creation time of that process; both must match a living process, because pids are
reused. The file is accessed under a lock on `running.process.lock`, as in 1.20. [spec cli 4.2] The process itself keeps
the file locked while it runs. That proves that it runs even after the clock was set, which changes its creation time
(docs/decisions/0343).
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from grid.errors import ConfigError, GridError
from grid.node.directory import open_directory
from grid.node.files import PUBLIC_MODE, read_text, write_atomically
from grid.values import frozen

FILE_NAME = "running.process"
_SAME_S = 1.5
"""Tolerance in seconds: setting the clock shifts the creation time of a running process; no pid is reused this fast."""


_SOON_S = 1.0
"""Seconds of waiting that need no explanation."""

NOW_S = 10.0
"""Seconds that a node may take to end at once. It needs far less unless it hangs."""


def _nothing(line: str) -> None:
    pass


@frozen
class RunningProcess:
    """A process: its pid, and its creation in Unix time."""

    pid: int
    created_at: float

    def is_alive(self) -> bool:
        """Whether that very process still runs."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.created_at) < _SAME_S
            return bool(same and process.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            return True

    def is_suspended(self) -> bool:
        """Whether a signal such as SIGSTOP has suspended it."""
        try:
            return bool(psutil.Process(self.pid).status() == psutil.STATUS_STOPPED)
        except psutil.Error:
            return False


def find_running(directory: Path) -> RunningProcess | None:
    """The living process that runs the node, or None."""
    try:
        text = read_text(directory / FILE_NAME) or ""
    except ConfigError:
        return None
    process = _parse(text)
    if process is None or process.is_alive():
        return process
    return _holder(directory / FILE_NAME, process.pid)


def _holder(path: Path, pid: int) -> RunningProcess | None:
    """The process with this pid, if the file is locked, as it is by the process that wrote it."""
    if not is_locked(path):
        return None
    try:
        return RunningProcess(pid, psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def is_locked(path: Path) -> bool:
    """Whether a process holds the file locked; False if there is no such file, or no locks where it lies."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


@contextmanager
def claim(directory: Path) -> Iterator[RunningProcess]:
    """Register this process as the node's while the block runs; ConfigError if another one is registered."""
    with _locked(directory):
        other = find_running(directory)
        if other is not None:
            raise ConfigError(f"{directory}: a process is already running this node, with pid {other.pid}")
        own = RunningProcess(os.getpid(), psutil.Process().create_time())
        write_atomically(directory / FILE_NAME, f"{own.pid} {own.created_at}\n".encode(), PUBLIC_MODE)
        held = os.open(directory / FILE_NAME, os.O_RDONLY | os.O_CLOEXEC)
        with suppress(OSError):  # Some network file systems have no locks.
            fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield own
    finally:
        os.close(held)
        with _locked(directory):
            if _parse(read_text(directory / FILE_NAME) or "") == own:
                (directory / FILE_NAME).unlink(missing_ok=True)


def stop(
    directory: Path, *, patience_s: float = 20.0, say: Callable[[str], None] = _nothing, at_once: bool = False
) -> bool:
    """Stop the process of the node with SIGTERM, then SIGKILL; False if none runs. GridError if it stays.

    say: called with a message about long waits. at_once: interrupt work that would otherwise be allowed to finish. A process
    that does not react to that within NOW_S is not killed, but a GridError.
    """
    process = find_running(directory)
    if process is None:
        return False
    _send(process, signal.SIGTERM)
    if at_once:
        _interrupt(process, say)
    elif not _wait(process, min(_SOON_S, patience_s)):
        say(f"process {process.pid} is finishing its requests; waiting up to {patience_s:.0f} s")
    if not _wait(process, 0.0 if at_once else patience_s):
        say(f"process {process.pid} did not stop; killing it")
        _send(process, signal.SIGKILL)
        if not _wait(process, 5.0):
            raise GridError(f"{directory}: process {process.pid} still runs after SIGKILL; its disk may hang")
    _forget(directory, process)  # Interrupted or killed, it left its file, which would look like a crash.
    return True


def _interrupt(process: RunningProcess, say: Callable[[str], None]) -> None:
    """End the process, which has received SIGTERM, with SIGINT; GridError if it does not react."""
    # Pause before the second signal: a process that has not seen the first yet would take both for one.
    _wait(process, _SOON_S)
    _send(process, signal.SIGINT)
    if _wait(process, NOW_S / 4):
        return
    say(f"process {process.pid} does not react; waiting up to {NOW_S * 3 / 4:.0f} s longer")
    if not _wait(process, NOW_S * 3 / 4):
        cure = f"`kill -9 {process.pid}` ends it"
        if process.is_suspended():
            raise GridError(
                f"the node (pid {process.pid}) is suspended: `kill -CONT {process.pid}` resumes it, and {cure}"
            )
        raise GridError(f"the node (pid {process.pid}) does not react; {cure}")


def find_dead(directory: Path) -> int | None:
    """The pid of a process that ran the node and ended without cleaning up; None if there is none, or the node runs."""
    try:
        process = _parse(read_text(directory / FILE_NAME) or "")
    except ConfigError:
        return None
    return None if process is None or find_running(directory) is not None else process.pid


def _forget(directory: Path, process: RunningProcess) -> None:
    """Remove the record of a process that has ended, unless another one has replaced it."""
    with suppress(ConfigError, OSError), _locked(directory):
        found = _parse(read_text(directory / FILE_NAME) or "")
        if found is not None and found.pid == process.pid:  # Its creation time changes when the clock is set.
            (directory / FILE_NAME).unlink(missing_ok=True)


def _wait(process: RunningProcess, seconds: float) -> bool:
    """Whether it ended within this time."""
    deadline = time.monotonic() + seconds
    while process.is_alive():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True


def ask_to_stop(directory: Path) -> RunningProcess | None:
    """Send SIGTERM to the node's process and return it; None if none runs."""
    process = find_running(directory)
    if process is not None:
        _send(process, signal.SIGTERM)
    return process


def _send(process: RunningProcess, number: signal.Signals) -> None:
    try:
        # Check is_alive() just before, so a reused pid is never signaled.
        if process.is_alive():
            os.kill(process.pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        raise GridError(f"process {process.pid} belongs to another user; only that user can stop it") from None


def _parse(text: str) -> RunningProcess | None:
    words = text.split()
    try:
        pid, created_at = int(words[0]), float(words[1])
    except (IndexError, ValueError):
        return None
    return RunningProcess(pid, created_at) if 0 < pid < 2**31 else None


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    path = directory / f"{FILE_NAME}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        deadline = time.monotonic() + 10.0
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ConfigError(f"{path}: another process keeps it locked") from None
                time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


STOP_S = 25.0
"""Seconds to close connections and files. The process allows itself less, and then ends as it is."""


def patience_s(directory: Path) -> float:
    """Seconds after which the node's process counts as hung: the drain time of its web gateway, and a reserve."""
    try:
        return STOP_S + open_directory(directory).settings.web_drain_s
    except (ConfigError, OSError):
        # Since its start, the configuration was changed or the directory removed.
        return STOP_S
