"""Installations of Grid for nodes, commands and warm clients: this tree's, or that of an older commit.

An older commit gets a copy of its tree and an environment under .tox/baselines in which only Grid is installed:
everything else comes from the current environment, so two commits differ in Grid alone. They are kept for later; `make
clean` removes them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from perf.processes.node_process import child_environment

ROOT = Path(__file__).resolve().parent.parent.parent
BASELINES = ROOT / ".tox" / "baselines"


@frozen
class Installation:
    """A Grid. tree: its sources, with its own harness. python: of its environment."""

    tree: Path
    python: Path

    @property
    def program(self) -> str:
        """Its `grid` command."""
        return str(self.python.with_name("grid"))

    def module(self, name: str, *arguments: str) -> list[str]:
        """The command that runs a module of its harness, with the tree as its working directory."""
        return [str(self.python), "-m", name, *arguments]


OWN = Installation(ROOT, Path(sys.executable))
"""The current installation."""


def resolve(commit: str) -> str:
    """The full hash of a commit; ValueError if there is none."""
    found = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        raise ValueError(f"there is no commit {commit!r} in {ROOT}")
    return found.stdout.strip()


def install_baseline(commit: str) -> Installation:
    """The Grid of a commit, installed if necessary. Building it takes a minute, and setuptools from PyPI."""
    name = resolve(commit)
    home = BASELINES / name[:12]
    baseline = Installation(home / "tree", home / "environment" / "bin" / "python")
    ready = home / "ready"
    if not ready.exists():
        _unpack(name, baseline.tree)
        _run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(home / "environment")])
        _run(["sh", str(ROOT / "scripts" / "install.sh"), str(baseline.python), "--no-deps", str(baseline.tree)])
        _borrow_dependencies(baseline)
        ready.touch()
    _expect_installed(baseline)
    return baseline


def _unpack(commit: str, tree: Path) -> None:
    tree.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", commit], stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)


def _borrow_dependencies(baseline: Installation) -> None:
    """Let the environment use our packages after its own; it has its own Grid, which takes precedence over ours."""
    (site,) = (baseline.python.parent.parent / "lib").glob("python*/site-packages")
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (site / "zz_dependencies.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in ours))


def _expect_installed(baseline: Installation) -> None:
    found = _run([str(baseline.python), "-c", "import grid; print(grid.__file__)"]).strip()
    if not Path(found).is_relative_to(baseline.python.parent.parent):
        raise ValueError(f"{baseline.python} imports {found}, not the Grid of its own environment")


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, cwd=BASELINES.parent, env=child_environment(), check=True
    )
    return done.stdout
