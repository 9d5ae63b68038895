"""Choosing test rows for every change: they keep every value or pair of values, and they are few."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support.depth import Value, covering

TABLES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


def table(counts: list[int]) -> list[list[Value]]:
    """All rows of parameters with these numbers of values."""
    return [[(number, str(value)) for number, value in enumerate(row)] for row in product(*map(range, counts))]


@given(counts=TABLES, size=st.integers(1, 2), left_out=st.sets(st.integers(0, 100)))
def test_covering_rows_hold_every_combination_that_any_row_holds(
    counts: list[int], size: int, left_out: set[int]
) -> None:
    rows = [row for index, row in enumerate(table(counts)) if index not in left_out]
    kept = covering(rows, size)
    some, every = (
        {combination for row in chosen for combination in combinations(row, min(size, len(counts)))}
        for chosen in ([rows[index] for index in kept], rows)
    )
    assert some == every


def test_covering_rows_are_few() -> None:
    assert len(covering(table([13, 4, 2, 2]), 1)) == 13
    assert len(covering(table([13, 4, 2, 2]), 2)) < 60
    assert len(covering(table([7]), 2)) == 7


CONFTEST = """
from tests.support.depth import Depth

def pytest_configure(config):
    config.pluginmanager.register(Depth())
    for name in ("each_value", "each_pair", "rows", "nightly", "deep"):
        config.addinivalue_line("markers", name)
"""

TESTS = """
import pytest

@pytest.mark.each_value
@pytest.mark.parametrize(("a", "same"), [(number, 1) for number in range(8)])
@pytest.mark.parametrize("b", range(3))
def test_values(a, same, b):
    pass

@pytest.mark.each_pair
@pytest.mark.parametrize("a", range(8))
@pytest.mark.parametrize("b", range(3))
@pytest.mark.parametrize("c", range(3))
def test_pairs(a, b, c):
    pass

@pytest.mark.rows(5)
@pytest.mark.parametrize("seed", range(16))
def test_seeds(seed):
    pass

def test_other():
    pass
"""


def collected(folder: Path, tests: str, expression: str) -> str:
    """What pytest prints that only collects these tests."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_rows.py").write_text(tests)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        f"--rootdir={folder}",
        "-m",
        expression,
        str(folder),
    ]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": os.getcwd(), "PYTEST_ADDOPTS": ""}
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_rows_that_repeat_a_claim_are_collected_in_a_deep_run_only(tmp_path: Path) -> None:
    few, all = (collected(tmp_path, TESTS, expression) for expression in ("not deep", ""))
    assert [few.count(name) for name in ("test_values", "test_pairs", "test_seeds", "test_other")] == [8, 24, 5, 1]
    assert [all.count(name) for name in ("test_values", "test_pairs", "test_seeds", "test_other")] == [24, 72, 16, 1]


def test_test_whose_rows_are_all_deep_is_refused(tmp_path: Path) -> None:
    printed = collected(tmp_path, "import pytest\n\n@pytest.mark.deep\ndef test_claim(): pass\n", "not deep")
    assert "test_rows.py::test_claim: every row is deep" in printed


NIGHTLY = """
import pytest

@pytest.mark.nightly("test_rows.py::test_cheap")
@pytest.mark.parametrize("a", range(3))
def test_costly(a):
    pass

def test_cheap():
    pass
"""


def test_costly_test_is_collected_in_a_deep_run_only_and_names_one_that_is_not(tmp_path: Path) -> None:
    few, all = (collected(tmp_path, NIGHTLY, expression) for expression in ("not deep", ""))
    assert [few.count(name) for name in ("::test_costly", "::test_cheap")] == [0, 1]
    assert [all.count(name) for name in ("::test_costly", "::test_cheap")] == [3, 1]
    missing = NIGHTLY.replace("def test_cheap", "def test_another")
    assert "is not in make test" in collected(tmp_path, missing, "not deep")
    both = NIGHTLY.replace("def test_cheap", '@pytest.mark.nightly("test_rows.py::test_costly")\ndef test_cheap')
    assert "is not in make test" in collected(tmp_path, both, "not deep")
