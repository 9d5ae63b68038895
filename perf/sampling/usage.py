"""What processes cost: processor seconds and memory, read from /proc by pid, or from the end of a command."""

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


class CommandFailedError(Exception):
    """A measured command ended with another status than 0."""


@frozen
class Trace:
    """What a client saw of an operation: the requests it sent to servers, and its events as perf.sampling.timeline writes them."""

    requests: int
    timeline: str


@frozen(kw_only=True)
class Usage:
    """Of one operation: wall seconds, the client's processor seconds and its memory before and at its peak, bytes.

    first_byte_s: from asking until the first byte of the answer, the median of several files. client_idle_rss: when
    nothing had been asked of it yet. traffic: of the client's connections. trace: what it saw itself. watched: of every
    process. status: what its status page says of it, asked only if it took long. None: not known.
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


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor seconds that these processes have used so far, user and system, all threads."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS_S


def resident(pids: Iterable[int]) -> int:
    """Bytes of memory that these processes hold now, added up."""
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids) * _PAGE


def reset_peaks(pids: Iterable[int]) -> None:
    """Let the peak of each process start again from what it holds now. [proc(5), clear_refs]"""
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_resident(pid: int) -> int:
    """The most bytes that the process held since it started, or since reset_peaks."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no memory any more")


def run_measured(command: Sequence[str], output: Path, environment: dict[str, str]) -> Usage:
    """Run a command to its end, its stdout to a file; CommandFailedError with its stderr if it fails.

    Its peak can not read lower than what this process holds itself (the child starts as its copy): keep that small.
    """
    started = time.perf_counter()
    with output.open("wb") as stdout, (output.parent / "stderr").open("w+b") as stderr:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment)
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
        client_peak_rss=used.ru_maxrss * 1024,
    )
