"""Runs as a process: transfers that are killed at the n-th step of their journal, each in a child that is forked warm.

    {"source": END, "target": END, "client": DIRECTORY, "journal": FILE, "fatal": STEP}

comes on stdin, one a line. An end is a path, a URL, or CAPABILITY:PATH. fatal: 0 for a transfer that is not killed. part_size: of files
that can resume, and from which size on they do; 0 for what the product has. For each line one goes out: {"killed": true}, or what the
transfer did, and in how many steps.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grid.caps import has_cap_prefix, parse_cap, require_usable
from grid.node.directory import open_directory
from grid.transfer import engine, partial_files, s3_uploads
from grid.transfer.ends import TargetEnd
from grid.transfer.engine import Transfer
from grid.transfer.grid_end import GridEnd
from grid.transfer.grid_session import GridSession
from grid.transfer.journal import Journal
from grid.transfer.local_end import LocalEnd
from grid.transfer.opening import open_source, open_target
from grid.transfer.outcome import Observer, Outcome, Plan
from tests.support.warm_programs import warm_program

ROOT = Path(__file__).resolve().parents[2]


class Killable:
    """The process that runs transfers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def transfer(
        self, source: str | Path, target: str | Path, journal: Path, *, client: Path | None = None, fatal: int = 0,
        packs: bool = False, part_size: int = 0,
    ) -> dict[str, Any]:  # fmt: skip
        """What the transfer did, or that it was killed."""
        order = {"source": str(source), "target": str(target), "journal": str(journal), "client": str(client or "")}
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps({**order, "fatal": fatal, "packs": packs, "part_size": part_size}) + "\n")
        stdin.flush()
        line = stdout.readline()
        assert line, "the process of the transfers ended"
        done: dict[str, Any] = json.loads(line)
        assert "error" not in done, done["error"]
        return done


@contextmanager
def killable_transfers(environment: Mapping[str, str]) -> Iterator[Killable]:
    """A process that runs transfers as often as it is asked to; it starts warm. environment: changes to ours."""
    process = subprocess.Popen(
        [warm_program("tests.transfer.killed_transfer")], cwd=ROOT, env={**os.environ, **environment},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield Killable(process)
    finally:
        process.communicate()


def main() -> None:
    """Serve until stdin ends."""
    for line in sys.stdin:
        readable, writable = os.pipe()
        child = os.fork()
        if not child:
            _run(json.loads(line), writable)
        os.close(writable)
        with os.fdopen(readable) as answer:
            said = answer.read()
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print(json.dumps({"killed": True}) if killed else said, flush=True)


def _run(order: dict[str, Any], answer: int) -> None:
    """In the child: one transfer."""
    try:
        if order["part_size"]:
            engine.RESUMED_SIZE = partial_files.PART_SIZE = s3_uploads.PART_SIZE = order["part_size"]
        engine.SETTLE_S = 1e6  # Otherwise a slow machine would settle files in more steps.
        outcome, steps = asyncio.run(_transfer(order))
        failures = [f"{name}: {error}" for name, error in outcome.failures]
        done = {"copied": outcome.copied, "unchanged": outcome.unchanged, "failures": failures, "killed": False}
        done["steps"] = steps
    except BaseException:
        done = {"error": traceback.format_exc()}
    os.write(answer, json.dumps(done).encode())
    os._exit(0)


async def _transfer(order: dict[str, Any]) -> tuple[Outcome, int]:
    left = [order["fatal"]]

    def step() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sessions: list[GridSession] = []

    def open_other(text: str, *, is_target: bool) -> TargetEnd:
        if not has_cap_prefix(text):
            return LocalEnd(text, is_target=is_target)
        from grid.library.reactor_thread import running_reactor

        if not sessions:
            sessions.append(GridSession(open_directory(Path(order["client"])), running_reactor()))
        cap, _, path = text.rpartition(":")
        root = require_usable(parse_cap(cap))
        return GridEnd(sessions[0], root, path.split("/") if path else [], "grid", packs=order["packs"])

    source, target = open_source(order["source"], open_other), open_target(order["target"], open_other)
    journal = Journal(Path(order["journal"]), step)
    outcome = await Transfer([source], target, journal, Plan(), observer=Observer()).run()
    journal.close()
    for end in (source, target):
        await end.close()
    for session in sessions:
        await session.close()
    return outcome, order["fatal"] - left[0]


if __name__ == "__main__":
    main()
