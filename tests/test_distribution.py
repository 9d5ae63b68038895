"""Tests of one grid or module stay together, and long ones go first."""

from __future__ import annotations

from pathlib import Path

from tests.support.distribution import may_run_long, sort_key


def test_order_when_some_modules_may_run_long_has_them_first_and_no_module_split() -> None:
    given = ["a.py::1", "b.py::1", "b.py::2", "c.py::1", "c.py::2", "c.py::3", "d.py::1", "b.py::3"]
    key = sort_key(given, lambda nodeid: nodeid.startswith(("d", "b")))
    assert sorted(given, key=key) == [
        *["b.py::1", "b.py::2", "b.py::3", "d.py::1"],
        *["c.py::1", "c.py::2", "c.py::3", "a.py::1"],
    ]


def test_tests_of_one_grid_when_they_are_of_several_modules_stay_together() -> None:
    given = [
        "a.py::1[tahoe-servers]",
        "a.py::1[grid-servers]",
        "b.py::1[tahoe-servers]",
        "c.py::1",
        "b.py::2[tahoe-servers]",
    ]
    assert sorted(given, key=sort_key(given, lambda nodeid: True)) == [
        *["a.py::1[tahoe-servers]", "b.py::1[tahoe-servers]", "b.py::2[tahoe-servers]"],
        *["a.py::1[grid-servers]", "c.py::1"],
    ]


def test_tests_of_a_shared_grid_when_nothing_else_says_so_may_run_long() -> None:
    given = ["a.py::1", "a.py::2", "test_mutable_over_http.py::1[sdmf-grid-servers]"]
    assert sorted(given, key=sort_key(given, lambda nodeid: False)) == [given[2], *given[:2]]


def test_module_when_it_starts_processes_or_drives_a_machine_may_run_long() -> None:
    tests = Path(__file__).parent
    long = [
        "mutable/test_machine.py",
        "node/test_local_grid.py",
        "interop/test_files.py",
        "simulate/test_killed_client.py",
    ]
    assert [name for name in long if not may_run_long(tests / name)] == ["interop/test_files.py"]
    assert not may_run_long(tests / "caps" / "test_values.py")
