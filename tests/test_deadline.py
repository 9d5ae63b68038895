"""A test that hangs ends its process, and says where it hangs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.warm_programs import ROOT

CONFTEST = """
from tests.support.deadline import Deadline

def pytest_configure(config):
    config.pluginmanager.register(Deadline(0.5, every_s=0.1))
    config.addinivalue_line("markers", "timeout")
"""

TESTS = """
import time
import pytest

def test_quick():
    pass

@pytest.mark.timeout(60)
def test_that_may_take_long():
    time.sleep(1.5)

def test_that_hangs():
    time.sleep(60)

def test_behind_it():
    pass
"""


def test_process_of_a_test_that_hangs_ends_and_says_where(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_some.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", "."]
    done = subprocess.run(
        [*command, "-o", f"pythonpath={ROOT}", "test_some.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 1
    assert done.stdout.count("PASSED") == 2 and "test_behind_it" not in done.stdout
    assert "a test has run for too long" in done.stderr and "in test_that_hangs" in done.stderr
