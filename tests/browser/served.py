"""The process of the gateway that browsers look at, and orders to it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import define, field

from perf.processes.node_process import child_environment

ROOT = Path(__file__).resolve().parent.parent.parent


@define(eq=False)
class Served:
    """The gateway's process; orders to its servers. folder: where it keeps what belongs to its client.

    visits: the address of a read-only gateway over the same servers.
    """

    process: subprocess.Popen[str]
    address: str
    visits: str
    folder: Path
    down: set[int] = field(factory=set)

    def order(self, text: str) -> str:
        """Have it done before this returns; what it says of it."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(f"{text}\n")
        stdin.flush()
        word, _, said = stdout.readline().strip().partition(" ")
        assert word == "ok"
        return said

    def kill(self, number: int) -> None:
        """No server with that number any more."""
        self.order(f"down {number}")
        self.down.add(number)

    def heal(self) -> None:
        """All servers are back, quick and trusted: what comes next does not depend on what was before."""
        for number in sorted(self.down):
            self.order(f"up {number}")
        self.down.clear()
        self.order("slow 0")
        self.order("release")
        self.order("trust")


@contextmanager
def serve_pages(folder: Path) -> Iterator[Served]:
    """Run a gateway while the context lasts."""
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.browser.serving", str(folder)],
            cwd=ROOT,
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert process.stdin is not None and process.stdout is not None
        ports = process.stdout.readline().split()
        assert ports, (folder / "log").read_text()
        address, visits = (f"http://127.0.0.1:{port}" for port in ports)
        yield Served(process, address, visits, folder)
        process.stdin.close()
        process.wait(30)
        process.stdout.close()
