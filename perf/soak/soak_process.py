"""The process of a soak's client: takes requests as lines of JSON."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perf.processes.node_process import child_environment

ROOT = Path(__file__).resolve().parent.parent.parent

ANSWER_S = 240.0
"""Seconds that operations may take together: a put that waits for stalled servers takes minutes at most."""


class SoakError(Exception):
    """The soak cannot continue; the message says why."""


class ClientProcess:
    """perf.soak.soak_client in a separate process."""

    def __init__(self, directories: Sequence[Path], servers: int, gateway: str, log: Path) -> None:
        command = [sys.executable, "-m", "perf.soak.soak_client", str(servers), gateway, *map(str, directories)]
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=ROOT,
                env=child_environment(),
            )
        self.pid = self._process.pid

    def ask(self, operations: Sequence[dict[str, Any]]) -> None:
        """Start operations."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(list(operations)).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self) -> list[dict[str, Any]]:
        """Their results; SoakError if that takes too long or the process has ended."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], ANSWER_S)
        if not ready:
            raise SoakError(f"no answer within {ANSWER_S:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise SoakError(f"the client ended with status {self._process.wait()}")
        answers: list[dict[str, Any]] = json.loads(line)
        return answers

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
