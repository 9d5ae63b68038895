"""A client directory of the tests' grid with an alias for a new directory."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

from attrs import frozen

from grid.node.local_grid import LocalGrid
from tests.cli.command import Outcome, environment, grid
from tests.support.warm_programs import warm_program


@frozen
class TreeClient:
    """directory: of the client; its database begins empty. The alias `w:` is a new directory."""

    directory: Path

    def run(self, *arguments: str | Path, stdin: bytes = b"") -> Outcome:
        """Run a command to its end, whatever it is."""
        return grid("-d", self.directory, *arguments, stdin=stdin)

    def succeed(self, *arguments: str | Path, stdin: bytes = b"") -> str:
        """Run a command that ends with 0; its stdout."""
        outcome = self.run(*arguments, stdin=stdin)
        assert outcome.code == 0, outcome.err + outcome.out.decode()
        return outcome.line

    def listing(self, path: str) -> dict[str, Any]:
        """The children of a directory of the grid: name to kind, capabilities and metadata."""
        answer: dict[str, Any] = self._use("list", path)
        return answer

    def make_mutable(self, path: str, contents: str) -> str:
        """Link a new mutable file; its write capability."""
        cap: str = self._use("mutable", path, contents)
        return cap

    def link(self, path: str, cap: str) -> None:
        """Link a capability, in directories that are made if they are not there."""
        self._use("link", path, cap)

    def read(self, path: str) -> str:
        """The contents of a file of the grid."""
        contents: str = self._use("read", path)
        return contents

    def _use(self, *arguments: str) -> Any:
        command = [warm_program("tests.cli.tree_tool"), str(self.directory), *arguments]
        done = subprocess.run(command, capture_output=True, env=environment(), check=False, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    def tree(self, path: str) -> dict[str, str]:
        """Every file below a directory of the grid: path to capability."""
        answer: dict[str, str] = self._use("tree", path)
        return answer

    @property
    def database(self) -> Path:
        """Where the local database is."""
        return self.directory / "private" / "backupdb.sqlite"


def make_tree_client(local_grid: LocalGrid, path: Path) -> TreeClient:
    """A copy of the grid's client directory."""
    shutil.copytree(local_grid.client, path, ignore=shutil.ignore_patterns("running*", "backupdb*", "aliases*"))
    client = TreeClient(path)
    client._use("alias", "w:")
    return client


def make_local_tree(root: Path) -> Path:
    """Files of three sizes, an empty directory, and a name that is not ASCII; the root."""
    (root / "sub" / "empty").mkdir(parents=True)
    (root / "small").write_bytes(b"small")
    (root / "sub" / "b\u00fc").write_bytes(random.Random(1).randbytes(3000))
    (root / "sub" / "large").write_bytes(random.Random(2).randbytes(200_000))
    return root


def local_files(root: Path) -> dict[str, bytes]:
    """Every file below a local directory."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
