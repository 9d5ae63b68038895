"""Runs the `grid` command as users do: as a process, which starts warm unless a test is about startup."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from attrs import frozen

from tests.support.warm_programs import warm_program


@frozen
class Outcome:
    """How a command ended, and its output."""

    code: int
    out: bytes
    err: str

    @property
    def line(self) -> str:
        """Its stdout as one line of text."""
        return self.out.decode().strip()


def environment(**added: str) -> dict[str, str]:
    """Our environment, without variables that change how grid behaves."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRID_", "COV_"))}
    return {**kept, **added}


def new_directory(client: Path) -> str:
    """The capability of a directory that is made for the test."""
    made = grid("-d", client, "mkdir")
    assert made.code == 0, made.err
    return made.line


def grid(*arguments: str | Path, stdin: bytes = b"", **added: str) -> Outcome:
    """Run the command to its end; added: variables of its environment."""
    command = [warm_program("grid.cli"), *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, env=environment(**added), check=False, timeout=120)
    return Outcome(done.returncode, done.stdout, done.stderr.decode())
