"""Building and installing: distributions, with and without a compiler, and an unchanged source tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging

ROOT = Path(__file__).resolve().parents[2]
OURS = ("src", "docs", "setup.cfg", "setup.py", "pyproject.toml", "README.md", "LICENSE", "tests", "ruff.toml")
FORMATS = ("tests/crypto", "tests/codec", "tests/caps")
"""Tests of all that rests on hashes."""


def run(*command: str | Path, folder: Path = ROOT, **variables: str) -> str:
    """What the command prints; it has to succeed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's tree as it is checked out."""
    copy = tmp_path_factory.mktemp("tree")
    passed_over = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so")
    for name in OURS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=passed_over)
        else:
            shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def distributions(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source distribution, and the wheel built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, tree)
    return folder


def wheel_in(folder: Path) -> Path:
    (wheel,) = folder.glob("*.whl")
    return wheel


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_distributions_when_checked_are_fit_for_an_index(distributions: Path) -> None:
    files = sorted(distributions.iterdir())
    assert [path.suffix for path in files] == [".whl", ".gz"]
    run(sys.executable, "-m", "twine", "check", "--strict", *files)


@pytest.mark.parametrize("command", ["wheel", "install"])
def test_tree_when_installed_from_is_as_it_was(tree: Path, tmp_path: Path, command: str) -> None:
    shutil.rmtree(tree / "src" / "grid_storage.egg-info", ignore_errors=True)
    before = listing(tree)
    where = "--wheel-dir" if command == "wheel" else "--target"
    run(
        sys.executable,
        "-m",
        "pip",
        command,
        "-q",
        "--no-deps",
        "--no-build-isolation",
        where,
        tmp_path,
        ".",
        folder=tree,
    )
    assert listing(tree) == before


def test_wheel_when_there_is_a_compiler_serves_every_cpython_from_3_11(distributions: Path) -> None:
    wheel = wheel_in(distributions)
    assert shutil.which("cc"), "no C compiler here"
    assert "-cp311-abi3-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if name.endswith(".so")] == ["grid/crypto/_lanes.abi3.so"]


def test_package_when_there_is_no_compiler_installs_and_hashes_the_same(tree: Path, tmp_path: Path) -> None:
    run(
        *(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path, tree),
        CC="/bin/false",
    )
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel_in(tmp_path)) as archive:
        archive.extractall(installed)
    assert list(installed.rglob("*.so")) == []
    check_formats(installed, "hashlib", *FORMATS)


def test_wheel_when_installed_hashes_with_its_library(distributions: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel_in(distributions)) as archive:
        archive.extractall(tmp_path)
    has_instructions = "sha_ni" in Path("/proc/cpuinfo").read_text()
    check_formats(tmp_path, "lanes" if has_instructions else "hashlib", "tests/crypto")


def check_formats(installed: Path, hashing: str, *tests: str) -> None:
    """Run these tests against the installed package."""
    told = "import grid, sys; from grid.crypto.hashing import hash_name; print(grid.__file__, hash_name())"
    where, name = run(sys.executable, "-c", told, PYTHONPATH=str(installed)).split()
    assert Path(where).is_relative_to(installed)
    assert name == hashing
    pytest_command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    passed_over = ("--deselect", "tests/crypto/test_multi_buffer.py") if hashing == "hashlib" else ()
    run(*pytest_command, *passed_over, *tests, PYTHONPATH=str(installed))
