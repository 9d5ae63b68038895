"""Runs `grid` as a process, and says how much memory it took at most."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from tests.cli.command import environment

_LAUNCH = """
import resource, subprocess, sys
out, err, *command = sys.argv[1:]
with open(out, "wb") as stdout, open(err, "wb") as stderr:
    done = subprocess.run(command, stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""A process of its own, for a child begins with the peak of the process that it was forked from."""


@frozen
class Measured:
    """How a command ended. out, err: files with its output. peak: bytes."""

    code: int
    out: Path
    err: Path
    peak: int


def measured(folder: Path, *arguments: str | Path, **added: str) -> Measured:
    """Run the command; its output goes into the folder. added: variables of its environment."""
    out, err = folder / "out", folder / "err"
    command = [sys.executable, "-m", "grid.cli", *map(str, arguments)]
    kept: Mapping[str, str] = environment(XDG_STATE_HOME=str(folder / "state"), **added)
    done = subprocess.run(
        [sys.executable, "-c", _LAUNCH, str(out), str(err), *command],
        capture_output=True, check=True, text=True, env={**kept, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    code, peak = map(int, done.stdout.split())
    return Measured(code, out, err, peak * 1024)
