"""Soaks and the faults campaign that are killed: the next command removes what they left."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perf.processes.node_process import wait_until
from perf.sampling.freezer import clean_up


def killed(command: str, folder: Path) -> tuple[Path, str]:
    """The directory that the command left when it was killed, as soon as it had begun a grid there, and what it said."""
    words = [sys.executable, "-m", "perf", command, "--directory", str(folder), "--output", str(folder / command)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(
                lambda: process.poll() is not None or any(folder.glob(f"grid-perf-{command}-{process.pid}-*/*")),
                f"perf {command} to begin a grid",
            )
        finally:
            process.kill()
        _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL, said
    (left,) = folder.glob(f"grid-perf-{command}-{process.pid}-*")
    return left, said


@pytest.mark.parametrize(("first", "second"), [("soak", "faults"), ("faults", "soak")])
def test_directory_of_a_killed_command_is_removed_by_the_next(tmp_path: Path, first: str, second: str) -> None:
    left, _ = killed(first, tmp_path)
    assert any(left.iterdir())
    other, said = killed(second, tmp_path)
    assert f"a killed run left {left}, which is removed" in said
    assert not left.exists()
    told: list[str] = []
    clean_up(tmp_path, told.append)
    assert not other.exists()
    assert f"a killed run left {other}, which is removed" in told
