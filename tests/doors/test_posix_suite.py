"""pjdfstest in a directory that sshfs mounts from the door: all tests pass but those that docs/sftp-suite.md lists with a reason."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from perf.processes.node_process import child_environment
from tests.doors.grid import program
from tests.doors.sftp_grid import Door, mounted, opened_door

pytestmark = [pytest.mark.doors, pytest.mark.timeout(1800)]

PAGE = Path(__file__).parents[2] / "docs" / "sftp-suite.md"
SUITE_S = 1500.0
PJDFSTEST = """
[features]
utimensat = {}
utime_now = {}
[settings]
naptime = 1.1
[dummy_auth]
entries = [["nobody", "nogroup"], ["daemon", "daemon"]]
"""
"""Times have whole seconds; and users that every Debian has."""

GROUPS = ("chmod", "mkdir", "open", "rename", "rmdir", "truncate", "unlink", "utimensat")
"""What a directory of the grid can do at all; `truncate` also names ftruncate."""

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_RESULT = re.compile(r"^([a-z_0-9:]+) +(ok|FAILED|skipped)$", re.MULTILINE)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    # The suite makes thousands of directories, one after the other: with ten nodes, each would take ten times as many requests.
    with opened_door(tmp_path_factory.mktemp("door"), storage_count=1) as opened:
        yield opened


@pytest.fixture(scope="module")
def mount(door: Door, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with mounted(door, tmp_path_factory.mktemp("mounted")) as found:
        yield found


@pytest.fixture(scope="module")
def outcomes(mount: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """How each test ended, by its name: ok, FAILED or skipped."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "pjdfstest.toml").write_text(PJDFSTEST)
    words = [program("pjdfstest"), "-c", str(folder / "pjdfstest.toml"), "--path", str(mount), "--"]
    with (folder / "said").open("wb") as said:
        subprocess.run(
            [*words, *(f"{group}::" for group in GROUPS)], stdout=said, stderr=subprocess.STDOUT, check=False,
            env=child_environment(), timeout=SUITE_S,
        )  # fmt: skip
    found = _COLOR.sub("", (folder / "said").read_text(errors="replace"))
    assert re.search(r"^Summary: .* total$", found, re.MULTILINE), found[-4000:]
    return dict(_RESULT.findall(found))


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def listed(page: str) -> set[str]:
    """The patterns of the page: names of tests, with a star for any group."""
    return set(re.findall(r"`([a-z_0-9*]+::[a-z_0-9:*]+)`", page))


def is_listed(name: str, listed: set[str]) -> bool:
    """Whether the page lists a test."""
    return any(fnmatchcase(name, each) for each in listed)


def test_page_lists_only_tests_of_the_suite(outcomes: Mapping[str, str], listed: set[str]) -> None:
    assert {each for each in listed if not any(fnmatchcase(name, each) for name in outcomes)} == set()


def test_every_test_of_the_suite_passes_except_those_that_the_page_lists(
    outcomes: Mapping[str, str], listed: set[str]
) -> None:
    failed = sorted(name for name, outcome in outcomes.items() if outcome == "FAILED" and not is_listed(name, listed))
    assert not failed, f"{len(failed)} of {len(outcomes)} failed: {' '.join(failed)}"


def test_no_test_passes_for_whose_failure_the_page_gives_a_reason(
    outcomes: Mapping[str, str], listed: set[str]
) -> None:
    passed = sorted(name for name, outcome in outcomes.items() if outcome == "ok" and is_listed(name, listed))
    assert not passed, f"{len(passed)} pass, so their reasons are wrong: {' '.join(passed)}"


def test_page_counts_the_tests_as_they_ended(outcomes: Mapping[str, str], page: str) -> None:
    said = re.search(r"their (\d+) tests, (\d+) pass, (\d+) skip themselves, and (\d+) fail", page)
    assert said is not None
    counts = Counter(outcomes.values())
    assert [int(number) for number in said.groups()] == [
        len(outcomes), counts["ok"], counts["skipped"], counts["FAILED"],
    ]  # fmt: skip
