"""ceph/s3-tests at the S3 door: all tests pass except those that docs/s3-suite.md lists with a reason, and no other.

The environment variable GRID_S3_TESTS names a checkout of the suite.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from perf.processes.node_process import tether
from tests.doors.grid import checkout, program
from tests.doors.s3_suite import PAGE, Target, all_tests, listed_tests, run_suite
from tests.doors.versity import running_versitygw
from tests.s3.rig import MAIN, OTHER, SECRET

pytestmark = [pytest.mark.doors, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def suite() -> Path:
    """The checkout."""
    return checkout("GRID_S3_TESTS", "ceph/s3-tests")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A door over a server in memory, in a process of its own. The main account has no bucket yet."""
    folder = tmp_path_factory.mktemp("door")
    with (folder / "log").open("wb") as log:
        words = [*tether(), sys.executable, "-m", "tests.s3.process", str(folder / "door")]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) as process:
            assert process.stdin is not None and process.stdout is not None
            yield Target(int(process.stdout.readline()), OTHER, MAIN, SECRET)
            process.stdin.close()


@pytest.fixture(scope="module")
def listed() -> dict[str, set[str]]:
    """The tests in each section of the page."""
    return listed_tests(PAGE.read_text(encoding="utf-8"))


def test_page_lists_only_tests_of_the_suite_and_each_once(suite: Path, listed: dict[str, set[str]]) -> None:
    known = {each.partition("::")[2] for each in all_tests(suite)}
    named = [name for names in listed.values() for name in names]
    assert set(named) <= known
    assert len(named) == len(set(named))


def test_every_test_of_the_suite_passes_except_those_that_the_page_lists(
    suite: Path, target: Target, listed: dict[str, set[str]], tmp_path: Path
) -> None:
    left_out = set().union(*listed.values())
    wanted = [each for each in all_tests(suite) if each.partition("::")[2] not in left_out]
    outcomes = run_suite(program("s3tests"), suite, target, tmp_path, wanted)
    failed = sorted(name for name, passed in outcomes.items() if not passed)
    assert not failed, f"{len(failed)} of {len(outcomes)} failed: {' '.join(failed)}"
    assert len(outcomes) >= 150


def test_no_test_passes_for_whose_failure_the_page_gives_a_reason(
    suite: Path, target: Target, listed: dict[str, set[str]], tmp_path: Path
) -> None:
    explained = set().union(*listed.values())
    wanted = [each for each in all_tests(suite) if each.partition("::")[2] in explained]
    outcomes = run_suite(program("s3tests"), suite, target, tmp_path, wanted)
    passed = sorted(name for name, passed in outcomes.items() if passed)
    assert not passed, f"{len(passed)} pass, so their reasons are wrong: {' '.join(passed)}"
    assert outcomes


def test_versitygw_passes_as_many_of_the_listed_tests_as_the_page_says(
    suite: Path, listed: dict[str, set[str]], tmp_path: Path
) -> None:
    said = re.findall(r"^\| ([^|]+) \| (\d+) \| [^|]+ \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    sections = {name: section for section, names in listed.items() for name in names}
    wanted = [each for each in all_tests(suite) if each.partition("::")[2] in sections]
    with running_versitygw(tmp_path) as target:
        outcomes = run_suite(program("s3tests"), suite, target, tmp_path, wanted)
    passed = sorted(name for name, passed in outcomes.items() if passed)
    assert Counter(sections[name] for name in passed) == {section: int(count) for section, count in said}, passed
