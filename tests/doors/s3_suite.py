"""ceph/s3-tests at an S3 server: its configuration, its tests, the result of each, and the page that explains failures."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree

from attrs import field, frozen

FOLDER = "s3tests/functional"
FILES = ("test_s3.py", "test_headers.py")
TIME_S = 7000.0

PAGE = Path(__file__).parents[2] / "docs" / "s3-suite.md"


@frozen
class Target:
    """A server, and the access keys of two accounts with one secret."""

    port: int
    main: str
    other: str
    secret: str = field(repr=False)


def write_configuration(target: Target, file: Path) -> None:
    """Write where the server is, and its users. Ceph alone has roles and tenants: they are the other account."""
    config = configparser.RawConfigParser()
    config["DEFAULT"] = {"host": "127.0.0.1", "port": str(target.port), "is_secure": "False", "ssl_verify": "False"}
    config["fixtures"] = {"bucket prefix": "suite-{random}-"}
    others = ("s3 alt", "s3 tenant", "iam", "iam root", "iam alt root")
    for section, key in [("s3 main", target.main), *((name, target.other) for name in others)]:
        config[section] = {
            "access_key": key,
            "secret_key": target.secret,
            "display_name": key,
            "user_id": key,
            "email": f"{key}@example.com",
            "tenant": "tenant",
        }
    with file.open("w") as stream:
        config.write(stream)


def all_tests(checkout: Path) -> list[str]:
    """Every test of the suite, as FILE::NAME."""
    return [
        f"{name}::{found}"
        for name in FILES
        for found in re.findall(r"^def (test_\w+)\(", (checkout / FOLDER / name).read_text(), re.MULTILINE)
    ]


def listed_tests(page: str) -> dict[str, set[str]]:
    """The tests in each section of the page, by its heading."""
    sections = re.split(r"^## (.+)$", page, flags=re.MULTILINE)[1:]
    return {
        heading: set(re.findall(r"`(test_\w+)`", body))
        for heading, body in zip(sections[::2], sections[1::2], strict=True)
    }


def run_suite(python: str, checkout: Path, target: Target, folder: Path, wanted: Iterable[str]) -> Mapping[str, bool]:
    """Whether each test passes with all its parameters, by its name; those that skip themselves are left out.

    python: of an environment that has what the suite imports. wanted: tests as `all_tests` names them. AssertionError if
    the suite does not run.
    """
    write_configuration(target, folder / "s3tests.conf")
    results, log = folder / "results.xml", folder / "s3tests.log"
    (folder / "wanted").write_text("".join(f"{FOLDER}/{each}\n" for each in wanted))
    words = ["-v", "-p", "no:cacheprovider", "--tb=short", f"--junit-xml={results}", f"@{folder}/wanted"]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTEST_", "PYTHON"))
    }
    with log.open("wb") as said:
        subprocess.run(
            [python, "-m", "pytest", *words],
            cwd=checkout,
            env={**environment, "S3TEST_CONF": str(folder / "s3tests.conf"), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=said,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=TIME_S,
        )
    assert results.exists(), log.read_text(errors="replace")[-4000:]
    found: dict[str, bool] = {}
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        outcome = {each.tag for each in case}
        if "skipped" not in outcome:
            # A test whose removal of its buckets fails is in the file twice.
            name = case.attrib["name"].partition("[")[0]
            found[name] = found.get(name, True) and not outcome & {"failure", "error"}
    return found
