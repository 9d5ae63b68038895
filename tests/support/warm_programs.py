"""Python programs that start warm: each is a separate process, forked from one that has imported what it needs.

Most of the time of a short `grid` command goes into imports. A server process does them once; for each run it forks a
child with the caller's arguments, environment, working directory and standard streams. `warm_program` gives the path of an
executable that asks the server for a run, forwards signals to it, and ends as it ended. What differs from a program started
afresh: its modules are there already, in whatever order they were imported. It must not be used for what is about imports.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from perf.processes.node_directory import tahoe_executable
from perf.processes.node_process import child_environment
from perf.processes.process_grid import ProcessGrid
from tests.support import warm_caller, warm_server

ROOT = Path(__file__).resolve().parents[2]


@cache
def warm_program(module: str) -> str:
    """The path of a program that does what `python -m MODULE` does, for as long as this process runs."""
    return _made(Path(socket_of_grid()).with_name(module), module)


@cache
def warm_tahoe() -> str:
    """The path of a program that does what the `tahoe` does that GRID_TAHOE names, for as long as this process runs."""
    return warm_script(tahoe_executable())


@cache
def warm_script(path: str, imported: str = "") -> str:
    """The path of a program that does what the Python script at that path does, for as long as this process runs.

    imported: another script of the same environment, if that one's server is to run it.
    """
    return _made(Path(_socket_of(imported or path)).with_name(Path(path).name), path)


def socket_of_grid() -> str:
    """Where the server of Grid's programs listens."""
    return str(_server("-m", "tests.support.warm_server", program="grid") / "socket")


def socket_of_tahoe() -> str:
    """Where the server of 1.20's programs listens."""
    return _socket_of(tahoe_executable())


def _socket_of(script: str) -> str:
    return str(_server("-P", warm_server.__file__, program=script) / "socket")


def _made(program: Path, module: str) -> str:
    caller = Path(warm_caller.__file__).read_text()
    socket = str(program.with_name("socket"))
    program.write_text(f"#!{sys.executable} -IS\n{caller}\n\nmain({socket!r}, {module!r})\n")
    program.chmod(0o700)
    return str(program)


@cache
def _server(*how: str, program: str) -> Path:
    """The folder with the socket of a running server, which ends with this process at the latest. how: to start it."""
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    python = sys.executable if program == "grid" else str(Path(program).with_name("python"))
    server = subprocess.Popen(
        [python, *how, str(folder / "socket"), program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=child_environment(),
    )
    assert server.stdin is not None and server.stdout is not None

    def stop() -> None:
        server.communicate()
        shutil.rmtree(folder)

    atexit.register(stop)
    assert server.stdout.readline() == b"ready\n", "the server of warm programs did not start"
    return folder


class WarmGrid(ProcessGrid):
    """A grid of processes whose commands start warm."""

    @property
    def command(self) -> str:
        """The `grid` of its clients' command lines."""
        return warm_program("grid.cli")

    @property
    def tahoe_command(self) -> str:
        """The `tahoe` of its clients' command lines."""
        return warm_tahoe()
