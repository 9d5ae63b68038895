"""Only the measured system runs: checked by processor time."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from perf.campaigns.campaign import Encoding
from perf.runs.alone import Alone
from perf.sampling.freezer import make_freezer
from perf.sampling.usage import Usage
from perf.systems.contract import Member, WarmClient
from tests.perf.runs.test_runner import MemorySystem

T = TypeVar("T")

SPIN = "while True: pass"
WORK = "import time\nwhile time.process_time() < 0.2: pass"


class Spinning(MemorySystem):
    """A system whose only process never rests."""

    def __init__(self, label: str) -> None:
        super().__init__(label, [])
        self.process = subprocess.Popen([sys.executable, "-c", SPIN])

    def members(self) -> list[Member]:
        return [Member(role="server", name="server", pid=self.process.pid)]

    def ask(self, encoding: Encoding, operation: Callable[[WarmClient], T], client: str = "warm") -> tuple[T, Usage]:
        subprocess.run([sys.executable, "-c", WORK], check=True)
        return super().ask(encoding, operation, client)


@pytest.fixture
def pair() -> Iterator[tuple[Spinning, Spinning]]:
    """Two noisy systems."""
    systems = Spinning("grid"), Spinning("grid#2")
    yield systems
    for system in systems:
        system.process.kill()
        system.process.wait()


def nothing(_: WarmClient) -> None:
    """Ask nothing."""


def test_system_that_is_not_measured_uses_no_processor_time_and_each_has_its_turn(
    pair: tuple[Spinning, Spinning],
) -> None:
    freezer = make_freezer()
    try:
        for mine, other in (pair, pair[::-1]):
            for _ in range(20):  # On a busy machine a sample may be over before the spinning process had its turn.
                _, found = Alone(mine, [other], freezer).ask(Encoding(), nothing)
                assert found.watched is not None
                assert found.watched.others_cpu_s == 0.0
                if found.watched.spent["server0"].cpu_s > 0 and found.watched.spent["client"].cpu_s >= 0.1:
                    break
            else:
                raise AssertionError("what is measured was never seen")
    finally:
        freezer.close()


def test_system_that_is_not_frozen_is_seen_to_use_processor_time(pair: tuple[Spinning, Spinning]) -> None:
    mine, other = pair
    for _ in range(100):
        _, found = Alone(mine, [other], None).ask(Encoding(), nothing)
        assert found.watched is not None
        if found.watched.others_cpu_s:
            return
        time.sleep(0.01)
    raise AssertionError("what goes on was never seen")
