"""`versitygw test full-flow` at the S3 door: all tests pass except those that docs/s3-full-flow.md lists with a reason."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import pytest

from perf.processes.node_process import tether
from tests.doors.full_flow import PAGE, is_listed, listed_tests, run_full_flow
from tests.doors.grid import program
from tests.doors.s3_suite import Target
from tests.s3.rig import MAIN, OTHER, SECRET

pytestmark = [pytest.mark.doors, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bool]:
    """What the tests say about a door over a server in memory, in a process of its own."""
    versitygw, folder = program("versitygw"), tmp_path_factory.mktemp("flow")
    with (folder / "log").open("wb") as log:
        words = [*tether(), sys.executable, "-m", "tests.s3.process", str(folder / "door")]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) as process:
            assert process.stdin is not None and process.stdout is not None
            target = Target(int(process.stdout.readline()), OTHER, MAIN, SECRET)
            found = run_full_flow(versitygw, target, folder)
            process.stdin.close()
    return found


@pytest.fixture(scope="module")
def listed() -> set[str]:
    """The tests that the page lists, and groups of them."""
    return listed_tests(PAGE.read_text(encoding="utf-8"))


def test_page_lists_only_tests_of_the_full_flow(outcomes: Mapping[str, bool], listed: set[str]) -> None:
    assert {each for each in listed if not any(is_listed(name, [each]) for name in outcomes)} == set()


def test_every_test_of_the_full_flow_passes_except_those_that_the_page_lists(
    outcomes: Mapping[str, bool], listed: set[str]
) -> None:
    failed = sorted(name for name, passed in outcomes.items() if not passed and not is_listed(name, listed))
    assert not failed, f"{len(failed)} of {len(outcomes)} failed: {' '.join(failed)}"
    assert sum(outcomes.values()) >= 300


def test_no_test_passes_for_whose_failure_the_page_gives_a_reason(
    outcomes: Mapping[str, bool], listed: set[str]
) -> None:
    passed = sorted(name for name in listed if outcomes.get(name))
    assert not passed, f"{len(passed)} pass, so their reasons are wrong: {' '.join(passed)}"
