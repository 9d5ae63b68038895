"""The emulated link: builds line.c if necessary, runs it, and reads its counters.

Kernels without netem cannot delay or drop packets. Instead, `line` routes between the hosts, over a TUN device in each
host's namespace. With packets as large as TCP passes them on, it carries 1 Gbit/s at a few percent of a core; with
loss, where each packet is handled separately, at about a third of one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from attrs import frozen

from perf.network.contract import NetworkError
from perf.network.namespaces import NAMED

SOURCE = Path(__file__).with_name("line.c")
FLAGS = ("-O2", "-Wall")
GIGABIT = 10**9
MEGABIT = 10**6

DEVICE = "line0"
QUEUE_S = 0.1
LEAST_QUEUE = 256 * 1024


@frozen(kw_only=True)
class Access:
    """A host's connection. delay_s: one way, to the middle of the link. up, down: bits per second; 0 for no limit."""

    delay_s: float = 0.0
    up: int = 0
    down: int = 0

    @property
    def queue_bytes(self) -> int:
        """Bytes that may queue at either end: a tenth of a second's worth, as in typical routers."""
        return max(LEAST_QUEUE, int(max(self.up, self.down) / 8 * QUEUE_S))


def line_program() -> Path:
    """The compiled program, cached or built now; NetworkError without a compiler."""
    source = SOURCE.read_bytes()
    name = hashlib.sha256(source + " ".join(FLAGS).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "grid-perf"
    program = cache / f"line-{name}"
    if program.exists():
        return program
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise NetworkError("no C compiler for the emulated line: install gcc or clang, or set CC")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        made = Path(folder) / "line"
        done = subprocess.run(
            [compiler, *FLAGS, "-o", str(made), str(SOURCE)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise NetworkError(f"{compiler} cannot compile {SOURCE.name}: {done.stderr.strip()[-500:]}")
        made.replace(program)
    return program


class Line:
    """The running program, between hosts whose namespaces exist already.

    It ends with the context, or with this process.
    """

    def __init__(
        self, hosts: Sequence[tuple[str, str, Access]], *, loss: float = 0.0, seed: int = 1, urgent: bool = True
    ) -> None:
        """hosts: namespace, address and access of each. loss: probability for each packet of 1,500 bytes.

        urgent: run at real-time priority, where allowed.
        """
        self._arguments = [str(seed), str(round(loss * 10**6)), "0" if loss else "1", str(int(urgent))]
        self._arguments += [
            f"{NAMED / name},{address},{round(access.delay_s * 1e6)},{access.up},{access.down},{access.queue_bytes}"
            for name, address, access in hosts
        ]
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [str(line_program()), *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            self._read()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.communicate()

    @property
    def pid(self) -> int:
        """The program's pid; RuntimeError if it does not run."""
        return self._running().pid

    def counts(self) -> Mapping[str, Any]:
        """Processor seconds, packets delivered over 1 ms late, the greatest delay, and each host's packets."""
        process = self._running()
        assert process.stdin is not None
        process.stdin.write("counts\n")
        process.stdin.flush()
        counts: dict[str, Any] = json.loads(self._read())
        return counts

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            raise RuntimeError("the line does not run")
        return self._process

    def _read(self) -> str:
        process = self._running()
        assert process.stdout is not None
        assert process.stderr is not None
        if said := process.stdout.readline():
            return said
        raise NetworkError(f"the emulated line ended: {process.stderr.read().strip()}")
