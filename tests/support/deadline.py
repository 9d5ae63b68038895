"""Ends the process of a test that hangs, after a dump of what each of its threads does.

It is the last resort, for a test that blocks the reactor. One thread watches all tests of a process: with a timer for each, a quick
test waited longer for its timer's thread than for anything else.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Generator
from threading import Thread
from time import monotonic, sleep

import pytest


class Deadline:
    """The plugin; conftest registers it. `@pytest.mark.timeout(SECONDS)` gives a test another time than the others have."""

    def __init__(self, seconds: float, every_s: float = 5.0) -> None:
        """every_s: how often the thread looks. Made before pytest captures what is written to stderr."""
        self._seconds, self._every_s = seconds, every_s
        self._stderr = os.dup(2)
        self._ends: float | None = None
        self._thread: Thread | None = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Watch the test with its fixtures."""
        if self._thread is None:
            self._thread = Thread(target=self._watch, daemon=True, name="deadline of tests")
            self._thread.start()
        mark = item.get_closest_marker("timeout")
        self._ends = monotonic() + (self._seconds if mark is None else mark.args[0])
        try:
            return (yield)
        finally:
            self._ends = None

    def _watch(self) -> None:
        while True:
            sleep(self._every_s)
            ends = self._ends
            if ends is not None and monotonic() > ends:
                os.write(self._stderr, b"\na test has run for too long; this is what it does:\n")
                faulthandler.dump_traceback(self._stderr, all_threads=True)
                os._exit(1)
