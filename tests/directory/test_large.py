"""Large directories: frozen objects are released, and dropped dictionaries empty themselves."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
import weakref

from grid.directory.large import LARGE, Emptied, collector


class Value:
    """Something whose end can be seen."""


def wait_until_given_back() -> None:
    """Until no large dictionary is left."""
    for _ in range(2000):
        if not collector._held:
            return
        time.sleep(0.005)
    raise AssertionError("a large dictionary was never emptied")


def test_objects_of_a_large_directory_are_frozen_until_it_is_dropped_and_freed_then() -> None:
    wait_until_given_back()
    was_enabled = gc.isenabled()
    with collector.paused():
        assert not gc.isenabled()
        large = Emptied((number, Value()) for number in range(LARGE + 1)).completed()
    assert gc.isenabled() == was_enabled
    assert gc.get_freeze_count() > LARGE
    last = weakref.ref(large[LARGE])

    del large

    wait_until_given_back()
    assert last() is None
    assert gc.get_freeze_count() == 0


def test_small_dictionary_freezes_nothing_and_starts_no_thread() -> None:
    wait_until_given_back()
    with collector.paused():
        small = Emptied({1: Value()}).completed()
    assert gc.get_freeze_count() == 0
    del small
    assert not collector._held


def test_process_that_ends_with_a_large_directory_ends_at_once() -> None:
    code = "from grid.directory.large import Emptied\nkept = Emptied((n, n) for n in range(50_000)).completed()\nprint(len(kept))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert ended.stdout == b"50000\n"
