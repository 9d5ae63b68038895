"""The cost of each test: its processor time and that of its child processes.

With GRID_TEST_COSTS=FOLDER each pytest process writes FOLDER/PID.jsonl, a line a test: its name, its own processor seconds, those of
its children, and the seconds on the clock. The first test of a module pays for the module's fixtures.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
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
        before, began = os.times(), time.monotonic()
        outcome = yield
        after = os.times()
        own = after.user + after.system - before.user - before.system
        children = after.children_user + after.children_system - before.children_user - before.children_system
        cost = [item.nodeid, round(own, 3), round(children, 3), round(time.monotonic() - began, 3)]
        print(json.dumps(cost), file=self._file, flush=True)
        return outcome
