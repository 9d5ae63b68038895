"""`versitygw test full-flow` at an S3 server: the result of each test, and the page that explains failures."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.doors.s3_suite import Target

TIME_S = 3000.0

PAGE = Path(__file__).parents[2] / "docs" / "s3-full-flow.md"

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_LINE = re.compile(r"^(RUN|PASS|FAIL|SKIP) +([A-Za-z0-9_]+)", re.MULTILINE)
_END = re.compile(r"^RAN: ", re.MULTILINE)


def run_full_flow(program: str, target: Target, folder: Path) -> Mapping[str, bool]:
    """Whether each test passes, by its name; AssertionError if the flow does not reach its end.

    program: versitygw, which some tests run as ./versitygw.
    """
    (folder / "versitygw").symlink_to(program)
    names = ("AWS_", "SSL_CERT_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    account = ["--access", target.main, "--secret", target.secret, "--endpoint", f"http://127.0.0.1:{target.port}"]
    ran = subprocess.run(
        [program, "test", *account, "full-flow"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=TIME_S,
    )
    said = _COLOR.sub("", ran.stdout.decode("utf-8", "replace"))
    assert _END.search(said), said[-4000:]
    return outcomes_in(said)


def outcomes_in(said: str) -> dict[str, bool]:
    """Whether each test passed; one that began and said no more did not."""
    found: dict[str, bool] = {}
    for outcome, name in _LINE.findall(said):
        if outcome == "SKIP":
            found.pop(name, None)
        else:
            found[name] = outcome == "PASS"
    return found


def listed_tests(page: str) -> set[str]:
    """The tests that the page lists below its first heading, and groups of them as GROUP_*."""
    lists = page.partition("\n## ")[2]
    return set(re.findall(r"`([A-Za-z0-9]+_(?:[A-Za-z0-9_]+|\*)|Router[A-Za-z]+)`", lists))


def is_listed(name: str, listed: Iterable[str]) -> bool:
    """Whether the page lists a test, or its group."""
    return any(name == each or (each.endswith("*") and name.startswith(each[:-1])) for each in listed)
