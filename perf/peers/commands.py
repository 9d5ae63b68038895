"""Runs peers' commands to their end, and measures them by the kernel's accounting when they are reaped.

What a permanent process does is measured by the clock alone, for one file or for each of many.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TypeVar

from perf.peers.contract import Cost, PeerError
from perf.sampling.usage import peak_of_command, peak_resident, reset_peaks

COMMAND_S = 1800.0
"""The timeout, longer than any command takes: some peers wait forever for a server that refuses them."""

LAST_WORDS = 600

AT_ONCE = 8
"""Files of a folder that are moved at once: `grid cp`'s default."""

T = TypeVar("T")


def run_peer(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    directory: Path | None = None,
    data: bytes = b"",
    output: Path | None = None,
    limit_s: float = COMMAND_S,
) -> Cost:
    """Run the command; PeerError with its last output if it fails. data: its stdin. output: the file for its stdout.

    The cost includes child processes that it has reaped, such as scp's ssh.
    """
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as errors:
        stdin.write(data)
        stdin.seek(0)
        stdout = output.open("wb") if output is not None else errors
        try:
            return _measure(command, environment, directory, (stdin, stdout, errors), limit_s)
        finally:
            if output is not None:
                stdout.close()


def read_peer(
    command: Sequence[str], environment: Mapping[str, str], *, directory: Path | None = None, data: bytes = b""
) -> str:
    """The command's output; PeerError."""
    done = subprocess.run(
        command, input=data, capture_output=True, check=False, env=environment, cwd=directory, timeout=COMMAND_S
    )
    if done.returncode:
        raise PeerError(_describe(command, done.returncode, done.stderr))
    return done.stdout.decode(errors="replace")


def _measure(
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: Path | None,
    files: tuple[IO[bytes], IO[bytes], IO[bytes]],
    limit_s: float,
) -> Cost:
    stdin, stdout, errors = files
    reset_peaks([os.getpid()])
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=stdin, stdout=stdout, stderr=errors, env=environment, cwd=directory, start_new_session=True
    )
    starter = peak_resident(os.getpid())
    timer = threading.Timer(limit_s, _end_group, (process.pid,))
    timer.daemon = True
    timer.start()
    try:
        _, status, used = os.wait4(process.pid, 0)
    except BaseException:
        _end_group(process.pid)
        process.wait()
        raise
    finally:
        timer.cancel()
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        errors.seek(0)
        late = f"after {limit_s:.0f} s, " if seconds >= limit_s else ""
        raise PeerError(late + _describe(command, process.returncode, errors.read()))
    peak = peak_of_command(used.ru_maxrss * 1024, starter)
    return Cost(seconds=seconds, user_s=used.ru_utime, system_s=used.ru_stime, peak_rss=peak)


def _end_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _describe(command: Sequence[str], status: int, said: bytes) -> str:
    words = said[-LAST_WORDS:].decode(errors="replace").strip()
    return f"{Path(command[0]).name} ended with status {status}: {words or 'nothing said'}"


def timed(operation: Callable[[], object]) -> Cost:
    """The cost of an operation; PeerError if it failed."""
    started = time.perf_counter()
    try:
        operation()
    except (OSError, RuntimeError) as error:
        raise PeerError(str(error)) from None
    return Cost(seconds=time.perf_counter() - started)


def timed_each(operation: Callable[[T], object], items: Iterable[T]) -> Cost:
    """The cost of the operation on each item, AT_ONCE at a time, and when each began and ended. Raises what the operation does."""
    started = time.perf_counter()

    def one(item: T) -> tuple[float, float]:
        began = time.perf_counter() - started
        operation(item)
        return began, time.perf_counter() - started

    with ThreadPoolExecutor(AT_ONCE) as pool:
        each = list(pool.map(one, items))
    return Cost(seconds=time.perf_counter() - started, each=each)
