"""Installing packages with uv if it works, and with pip if it does not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with the scripts, and a Python that records its arguments."""
    (tmp_path / "scripts").mkdir()
    for name in ("install.sh", "retry.sh"):
        shutil.copy(SCRIPTS / name, tmp_path / "scripts")
    write_program(tmp_path / "python", 'echo "python $*" >>"$NOTES"')
    return tmp_path


def write_program(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o700)


def install(tree: Path, *arguments: str, **variables: str) -> tuple[int, list[str]]:
    """The exit code, and the calls of uv and Python. No uv of this machine is found."""
    tools = tree / "tools"
    tools.mkdir()
    for name in ("sh", "dirname", "sleep"):
        (tools / name).symlink_to(shutil.which(name) or name)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    done = subprocess.run(
        ["sh", tree / "scripts" / "install.sh", tree / "python", *arguments],
        env={**kept, "PATH": str(tools), "NOTES": str(tree / "notes"), "RETRY_PAUSE": "0", **variables},
        check=False,
    )
    return done.returncode, (tree / "notes").read_text().splitlines()


def test_packages_when_there_is_uv_are_installed_by_it_under_the_same_constraints(tree: Path) -> None:
    write_program(tree / ".tox" / "bootstrap" / "bin" / "uv", 'echo "uv $UV_CONSTRAINT: $*" >>"$NOTES"')
    assert install(tree, "--no-deps", "a package", PIP_CONSTRAINT="constraints.txt") == (
        0,
        [f"uv constraints.txt: pip install --quiet --python {tree}/python --no-deps a package"],
    )


def test_packages_when_uv_fails_are_installed_by_pip(tree: Path) -> None:
    write_program(tree / ".tox" / "bootstrap" / "bin" / "uv", 'echo uv >>"$NOTES"', "exit 2")
    status, notes = install(tree, "package")
    assert (status, notes) == (0, ["uv", "python -I -m pip --version", "python -I -m pip install --quiet package"])


def test_packages_when_there_is_neither_uv_nor_pip_are_installed_by_a_new_pip(tree: Path) -> None:
    write_program(tree / "python", 'echo "python $*" >>"$NOTES"', 'test "$*" != "-I -m pip --version"')
    assert install(tree, "package") == (
        0,
        ["python -I -m pip --version", "python -I -m ensurepip", "python -I -m pip install --quiet package"],
    )


def test_packages_when_pip_fails_too_are_tried_three_times_and_the_failure_is_reported(tree: Path) -> None:
    write_program(tree / "python", 'echo "python $*" >>"$NOTES"', 'test "$4" != install || exit 7')
    status, notes = install(tree, "package")
    assert status == 7
    assert notes == ["python -I -m pip --version", *["python -I -m pip install --quiet package"] * 3]


def test_environment_when_it_is_made_again_keeps_nothing_old(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import steps

    (tree / "environment").mkdir()
    (tree / "environment" / "old").touch()
    installed: list[list[str]] = []
    monkeypatch.setattr(steps, "run", lambda command: installed.append([str(part) for part in command]))
    steps.make_environment(tree / "environment", "package")
    assert not (tree / "environment" / "old").exists()
    assert installed == [["sh", f"{SCRIPTS}/install.sh", f"{tree}/environment/bin/python", "package"]]
    told = [f"{tree}/environment/bin/python", "-c", "import sys; print(sys.prefix != sys.base_prefix)"]
    assert subprocess.run(told, capture_output=True, text=True, check=True).stdout == "True\n"
