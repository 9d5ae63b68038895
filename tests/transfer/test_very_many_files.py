"""Transfers of very many files, as commands of their own: their memory does not grow with the number of files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.transfer.conftest import require
from tests.transfer.killed_transfer import ROOT
from tests.transfer.measured_command import Measured, measured
from tests.transfer.scripted_s3 import BUCKET, NumberedNames, ScriptedS3, long_page, scripted_s3

FEW = 2000
MANY = [30_000, pytest.param(10**6, marks=[pytest.mark.deep, pytest.mark.timeout(3600)])]
COUNTS = pytest.mark.parametrize("count", MANY)
BYTES_A_FILE = 40
"""What each file beyond a few may cost: less than its name does in Python."""
NOISE = 7 * 2**20
"""What the same command takes now more, now less, also with threads' arenas and a huge page of 2 MiB; and pages of databases that fill up. Where 30,000 files once took
4.3 MiB more, a million took 2.1."""


def require_bounded(few: Measured, many: Measured, count: int) -> None:
    """Assert that the many files took as much memory as the few."""
    grown = many.peak - few.peak
    bound = NOISE + min(BYTES_A_FILE * count, 8 * 2**20)
    print(f"{grown / 2**20:.1f} MiB more for {count} files than for {FEW}, whose peak is {few.peak / 2**20:.1f} MiB")
    assert grown < bound


@contextmanager
def buckets(sizes: dict[str, range], start: str = "file-") -> Iterator[tuple[ScriptedS3, dict[str, str]]]:
    """A server whose bucket has, below each prefix, files of these numbers; and its clients' environment."""
    require("obstore")
    names = {f"{prefix}/": NumberedNames(numbers, start) for prefix, numbers in sizes.items()}
    state = ScriptedS3(page_of=lambda prefix, token: long_page(names[prefix], prefix, token))
    with scripted_s3(state) as environment:
        yield state, environment


def lines_of(path: Path) -> int:
    """How many lines a file has."""
    with path.open("rb") as file:
        return sum(1 for _ in file)


@COUNTS
@pytest.mark.parametrize("options", [("--dry-run",), ("--dry-run", "--json")], ids=["text", "json"])
def test_dry_run_from_s3_names_every_file_in_bounded_memory(
    count: int, options: tuple[str, ...], tmp_path: Path
) -> None:
    def run(number: int) -> Measured:
        with buckets({"in": range(number)}) as (_, environment):
            done = measured(tmp_path, "transfer", *options, f"s3://{BUCKET}/in", tmp_path / "target", **environment)
        assert (done.code, done.err.read_text()) == (0, "")
        return done

    few, many = run(FEW), run(count)
    require_bounded(few, many, count)
    if "--json" in options:
        planned = json.loads(many.out.read_text())["planned"]
        assert len(planned) == count and planned[-1] == {"do": "send", "name": f"file-{count - 1:07}"}
    else:
        assert lines_of(many.out) == count + 1
        assert many.out.read_text().endswith(f"{count} files would be sent, 0 unchanged, 0 would be removed\n")
    assert not (tmp_path / "target").exists()


@COUNTS
def test_mirror_between_buckets_that_have_nothing_in_common_is_planned_in_bounded_memory(
    count: int, tmp_path: Path
) -> None:
    def run(number: int) -> Measured:
        sizes = {"in": range(number), "out": range(number, 2 * number)}
        ends = [f"s3://{BUCKET}/{prefix}" for prefix in sizes]
        with buckets(sizes) as (_, environment):
            return measured(tmp_path, "transfer", "--dry-run", "--delete", *ends, **environment)

    few, many = run(FEW), run(count)
    require_bounded(few, many, count)
    said = many.out.read_text()
    assert said.endswith(f"{count} files would be sent, 0 unchanged, {count} would be removed\n")
    assert said.count("would send ") == said.count("would remove ") == count


@COUNTS
def test_mirror_between_buckets_sends_and_removes_what_differs_in_bounded_memory(count: int, tmp_path: Path) -> None:
    differing = 40

    def run(number: int) -> Measured:
        sizes = {"in": range(number), "out": range(differing, number + differing)}
        ends = [f"s3://{BUCKET}/{prefix}" for prefix in sizes]
        with buckets(sizes) as (state, environment):
            state.objects |= {f"in/file-{each:07}": b"x" for each in range(differing)}
            done = measured(tmp_path, "transfer", "--delete", *ends, **environment)
        assert (done.code, done.err.read_text()) == (0, "")
        assert (
            done.out.read_text() == f"{differing} files copied, {number - differing} unchanged, {differing} removed\n"
        )
        assert {key for key in state.objects if key.startswith("out/")} == {
            f"out/file-{each:07}" for each in range(differing)
        }
        assert sorted(state.deleted) == [f"out/file-{number + each:07}" for each in range(differing)]
        return done

    few, many = run(FEW), run(count)
    require_bounded(few, many, count)


@COUNTS
def test_transfer_of_which_every_file_fails_says_why_of_each_in_bounded_memory(count: int, tmp_path: Path) -> None:
    def run(number: int) -> Measured:
        with buckets({"in": range(number)}, start="n" * 250) as (_, environment):
            return measured(tmp_path, "transfer", "--json", f"s3://{BUCKET}/in", tmp_path / "target", **environment)

    few, many = run(FEW), run(count)
    require_bounded(few, many, count)
    assert many.code == 1
    failures = json.loads(many.out.read_text())["failures"]
    assert len({failure["name"] for failure in failures}) == count
    assert all("longer than 255 bytes" in failure["why"] for failure in failures)
    assert lines_of(many.err) == count + 1


@pytest.fixture(scope="module", params=MANY)
def folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path]:
    """How many files, links and directories there are in `many`, and what it lies in; `few` has less of each."""
    root = tmp_path_factory.mktemp("many")
    for name, count in (("few", FEW), ("many", request.param)):
        (root / name / "files").mkdir(parents=True)
        (root / name / "folders").mkdir()
        for number in range(count):
            os.close(os.open(f"{root}/{name}/files/file-{number:07}", os.O_CREAT | os.O_WRONLY))
            os.symlink("nothing", f"{root}/{name}/files/link-{number:07}")
            os.mkdir(f"{root}/{name}/folders/folder-{number:07}")
    return request.param, root


@pytest.mark.parametrize("scheme", ["", "sftp"])
def test_dry_run_from_a_directory_has_every_file_in_bounded_memory(
    scheme: str, folders: tuple[int, Path], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count, root = folders
    added: dict[str, str] = {}
    before, below = "", ""
    if scheme:
        before, home = request.getfixturevalue("sftp")
        added, below = {"HOME": str(home)}, "/files"  # Each directory costs three requests, one after the other.

    def run(name: str) -> Measured:
        source = f"{before}{root / name}{below}"
        return measured(tmp_path, "transfer", "--dry-run", "--json", source, tmp_path / "target", **added)

    few, many = run("few"), run("many")
    require_bounded(few, many, 2 * count)
    assert many.code == 0
    said = json.loads(many.out.read_text())
    assert len({each["name"] for each in said["planned"]}) == len(said["planned"]) == count
    assert len(said["left_out"]) == lines_of(many.err) == count


@COUNTS
def test_journal_of_very_many_files_is_filled_compared_and_mirrored_in_bounded_memory(
    count: int, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tests.transfer.long_transfer", str(tmp_path / "journal"), str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    stored, linked, again, mirrored = map(json.loads, done.stdout.splitlines())
    kept = FEW // 2
    assert (stored["copied"], stored["failed"], stored["waiting"]) == (0, count, count)
    assert (linked["copied"], linked["linked"], linked["failed"], linked["waiting"]) == (0, count, 0, 0)
    assert (again["copied"], again["unchanged"]) == (0, count)
    assert (mirrored["unchanged"], mirrored["removed"]) == (kept, count - kept)
    print(f"{mirrored['grown'] / 2**20:.1f} MiB more for {count} files than for {FEW}")
    assert mirrored["grown"] < NOISE + min(BYTES_A_FILE * count, 8 * 2**20)
