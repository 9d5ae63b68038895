"""The cost of each test: its processor time and that of its child processes.

With GRID_TEST_COSTS=FOLDER each pytest process writes FOLDER/PID.jsonl, a line a test: its name, its own processor seconds, those of
all that descend from it, and the seconds on the clock. The first test of a module pays for the module's fixtures, and any test for what
nodes of others do meanwhile.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest


class TestCosts:
    """The plugin; conftest registers it when the folder is named."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{os.getpid()}.jsonl").open("a")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record the cost of a test, including its fixtures."""
        own, others, began = time.process_time(), descendants(), time.monotonic()
        outcome = yield
        costs = (time.process_time() - own, descendants() - others, time.monotonic() - began)
        cost = [item.nodeid, *(round(each, 3) for each in costs)]
        print(json.dumps(cost), file=self._file, flush=True)
        return outcome


def descendants() -> float:
    """The processor seconds of all processes that descend from this one, also of those that their parents have waited for."""
    ticks, waiting = 0, [os.getpid()]
    while waiting:
        folder = Path(f"/proc/{waiting.pop()}")
        with suppress(OSError):  # It has just ended, and its parent may have it.
            for task in (folder / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
            *used, waited_user, waited_system = map(
                int, (folder / "stat").read_text().rpartition(")")[2].split()[11:15]
            )
            ticks += waited_user + waited_system + (0 if folder.name == str(os.getpid()) else sum(used))
    return ticks / os.sysconf("SC_CLK_TCK")
