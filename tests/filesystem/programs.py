"""Programs that use the file system, each in its own process, where the reactor runs in a thread as it does for users."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grid.node.local_grid import LocalGrid
from tests.cli.command import environment, grid
from tests.support.warm_programs import warm_program

ROOT = Path(__file__).resolve().parents[2]
SUITE = "tests/filesystem/suite/abstract_suite.py"
DEADLINE_S = 280

HEAD = """
import fsspec
from grid.filesystem.system import GridFileSystem
for protocol in GridFileSystem.protocol:
    fsspec.register_implementation(protocol, GridFileSystem, clobber=True)
options = {"directory": DIRECTORY}
"""


@contextmanager
def running_grid(path: Path, *, node_count: int) -> Iterator[LocalGrid]:
    """A grid of processes, whose client has the aliases `suite`, for fsspec's own, and `data`."""
    outcome = grid("up", "--nodes", str(node_count), "--dir", path, "--detach")
    try:
        assert outcome.code == 0, outcome.err
        made = LocalGrid(path)
        for alias in ("suite", "data"):
            created = grid("-d", made.client, "create-alias", alias)
            assert created.code == 0, created.err
        yield made
    finally:
        grid("down", "--dir", path)


def run_program(
    body: str, directory: Path, folder: Path, packages: Path | None = None, *, is_warm: bool = False
) -> list[str]:
    """The lines that a program prints. It has `fsspec` and `options`, ends by itself, and says nothing on stderr.

    packages: a folder of packages that it finds before those that are installed, unless it starts warm.
    """
    start = [warm_program("tests.library.program")] if is_warm else [sys.executable, "-c"]
    program = f"DIRECTORY = {str(directory)!r}\n{HEAD}{textwrap.dedent(body)}"
    done = subprocess.run(
        [*start, program],
        cwd=folder,
        env=environment(**({} if packages is None else {"PYTHONPATH": str(packages)})),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout.splitlines()


def run_suite(directory: Path, folder: Path, *arguments: str) -> int:
    """How many tests of fsspec's suite pass on the client's grid; AssertionError if any does not, or is skipped."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull]
    added = {"GRID_SUITE_DIRECTORY": str(directory), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*command, "--rootdir", str(ROOT), "--basetemp", str(folder / "suite"), SUITE, *arguments],
        cwd=ROOT,
        env=environment(**added),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    last = done.stdout.splitlines()[-1]
    found = re.search(r"(\d+) passed", last)
    assert found is not None, last
    assert "skipped" not in last, last
    return int(found[1])
