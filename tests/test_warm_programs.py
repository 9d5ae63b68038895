"""A warm program gets what a program started afresh gets, and ends as that one ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from perf.processes.node_process import child_environment
from tests.support.warm_programs import ROOT, warm_program

PROBE = "tests.support.warm_probe"
FRESH = [sys.executable, "-m", PROBE]


def warm() -> list[str]:
    return [warm_program(PROBE)]


def run(command: Sequence[str], folder: Path) -> tuple[int, str, str]:
    """How it ends and what it writes, but for the line numbers of a traceback."""
    done = subprocess.run(
        command,
        input="given \u00fc".encode(),
        capture_output=True,
        cwd=folder,
        env={**child_environment(), "PROBE": "variable \u00fc", "PYTHONPATH": str(ROOT)},
        check=False,
    )
    error = done.stderr.decode()
    return done.returncode, done.stdout.decode(), error.splitlines()[-1] if "Traceback" in error else error


@pytest.mark.parametrize(
    "arguments",
    [["tell", "", "a b", "\u00fc\n"], ["exit", "0"], ["exit", "7"], ["exit", "what went wrong"], ["raise"]],
    ids=" ".join,
)
def test_warm_program_when_run_does_what_a_fresh_one_does(tmp_path: Path, arguments: list[str]) -> None:
    fresh = run([*FRESH, *arguments], tmp_path)
    assert run([*warm(), *arguments], tmp_path) == fresh
    assert fresh[1] or arguments == ["raise"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_warm_program_when_signaled_ends_with_what_it_runs(number: signal.Signals) -> None:
    with subprocess.Popen([*warm(), "wait"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"waiting\n"
        program.send_signal(number)
        assert program.stdout.read() == b"", "what it ran has its output open"
        ended = program.wait()
    assert ended == (1 if number == signal.SIGINT else -number)


def test_command_when_run_warm_prints_what_it_prints_when_run_afresh() -> None:
    for arguments in (["--version"], ["get", "URI:LIT:krugkidfnzsa", "--gateway"], ["ls", "--help"]):
        warm, fresh = (
            subprocess.run([*command, *arguments], capture_output=True, check=False)
            for command in ([warm_program("grid.cli")], [sys.executable, "-m", "grid.cli"])
        )
        assert (warm.returncode, warm.stdout, warm.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)
