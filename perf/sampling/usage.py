"""Processor seconds and memory of processes, read from /proc by pid, or at the end of a command."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from attrs import frozen

from perf.sampling.sampler import Watched
from perf.sampling.traffic import Traffic

_TICKS_S = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")

_COUNTED_TO = 2**20
"""The kernel counts a process's pages in batches, so two of its numbers may differ by this many bytes."""


class CommandFailedError(Exception):
    """A measured command failed."""


@frozen
class Trace:
    """A client's view of an operation: the number of requests to servers, and events as in perf.sampling.timeline."""

    requests: int
    timeline: str


@frozen(kw_only=True)
class Usage:
    """The cost of one operation: wall seconds, the client's processor seconds, and its memory before and at its peak,
    in bytes.

    first_byte_s: from the request to the first byte of the answer, the median of several files. client_idle_rss: before
    its first request. traffic: of the client's connections. trace: its own view. watched: of every process. status: its
    status page, fetched only if it was slow. client_peak_rss: 0 if it is not known. client_user_s, client_system_s: the two parts of client_cpu_s for a command, as
    the kernel counts them at its end; those of a permanent process are in watched. None: unknown.
    """

    seconds: float
    first_byte_s: float | None = None
    client_cpu_s: float
    client_idle_rss: int
    client_peak_rss: int
    traffic: Traffic | None = None
    trace: Trace | None = None
    watched: Watched | None = None
    status: Callable[[], str] | None = None
    client_user_s: float | None = None
    client_system_s: float | None = None


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor seconds used by these processes so far, user and system, all threads."""
    return sum(cpu_parts(pids))


def cpu_parts(pids: Iterable[int]) -> tuple[float, float]:
    """The user and the system seconds used by these processes so far, all threads."""
    user = system = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        user, system = user + int(fields[11]), system + int(fields[12])
    return user / _TICKS_S, system / _TICKS_S


def resident(pids: Iterable[int]) -> int:
    """Total bytes of memory that these processes hold now."""
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids) * _PAGE


def reset_peaks(pids: Iterable[int]) -> None:
    """Restart the peak of each process from its current memory. [proc(5), clear_refs]"""
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_resident(pid: int) -> int:
    """The peak memory of the process since its start or since reset_peaks, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no memory any more")


def peak_of_command(counted: int, starter: int) -> int:
    """A command's peak memory: what the kernel counted, or 0 if that may be the memory of the process that started it.

    starter: that process's own peak. The kernel counts it towards the command, which begins as a copy of that process.
    """
    return counted if counted > starter + _COUNTED_TO else 0


def run_measured(command: Sequence[str], output: Path, environment: dict[str, str]) -> Usage:
    """Run a command to its end, with its stdout in a file; CommandFailedError with its stderr if it fails.

    Its peak is 0, not known, if this process itself held as much: keep that small.
    """
    reset_peaks([os.getpid()])
    started = time.perf_counter()
    with output.open("wb") as stdout, (output.parent / "stderr").open("w+b") as stderr:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment)
        starter = peak_resident(os.getpid())
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            stderr.seek(0)
            tail = stderr.read()[-500:].decode(errors="replace")
            raise CommandFailedError(f"{command[0]} ended with status {process.returncode}: {tail}")
    return Usage(
        seconds=seconds,
        client_cpu_s=used.ru_utime + used.ru_stime,
        client_idle_rss=0,
        client_peak_rss=peak_of_command(used.ru_maxrss * 1024, starter),
        client_user_s=used.ru_utime,
        client_system_s=used.ru_stime,
    )
