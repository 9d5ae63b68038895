"""The command line of `tahoe` 1.20 at our gateway and at a 1.20 gateway: the same results.

Both sides run the same commands, one after the other, on trees of their own on the same grid; what they print, their exit
codes and the files that come back are compared when all is done.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from attrs import define, field

from perf.processes.clients import COMMAND_S, Done, WebClient
from perf.processes.node_process import child_environment
from tests.cli.tree_grid import local_files
from tests.interop.gateways import Gateways
from tests.support.exchanges import Alike
from tests.support.warm_programs import warm_tahoe

pytestmark = pytest.mark.interop

COMMANDS: dict[str, Sequence[str]] = {
    "create-alias": ["create-alias", "w"],
    "create-alias-again": ["create-alias", "w"],
    "put": ["put", "tree/large", "w:chk"],
    "put-unlinked": ["put", "tree/small"],
    "put-mutable": ["put", "--format=SDMF", "tree/small", "w:sdmf"],
    "put-mdmf": ["put", "--format=MDMF", "tree/large", "w:mdmf"],
    "put-over-mutable": ["put", "tree/sub/b\u00fc", "w:mdmf"],
    "put-over-directory": ["put", "tree/small", "w:"],
    "mkdir": ["mkdir", "w:sub"],
    "mkdir-deep": ["mkdir", "--format=MDMF", "w:sub/very/deep"],
    "mkdir-over-file": ["mkdir", "w:chk"],
    "get": ["get", "w:chk", "got"],
    "get-mutable": ["get", "w:mdmf", "got-mutable"],
    "get-missing": ["get", "w:none", "got-nothing"],
    "cp-up": ["cp", "-r", "tree", "w:copied"],
    "cp-down": ["cp", "-r", "w:copied/tree", "back"],
    "cp-across": ["cp", "w:chk", "w:sub/copy"],
    "ln": ["ln", "w:chk", "w:sub/linked"],
    "mv": ["mv", "w:sub/linked", "w:sub/moved"],
    "mv-over-directory": ["mv", "w:sub/moved", "w:sub/very"],
    "ls": ["ls", "-F", "--uri", "--readonly-uri", "w:"],
    "ls-below": ["ls", "w:sub"],
    "ls-missing": ["ls", "w:none"],
    "check": ["check", "w:chk"],
    "check-verify": ["check", "--verify", "w:mdmf"],
    "check-repair": ["check", "--repair", "w:sdmf"],
    "check-raw": ["check", "--raw", "w:chk"],
    "deep-check": ["deep-check", "-v", "--verify", "w:"],
    "deep-check-repair": ["deep-check", "--repair", "--add-lease", "w:"],
    "manifest": ["manifest", "w:"],
    "manifest-raw": ["manifest", "--raw", "w:sub"],
    "stats": ["stats", "w:"],
    "backup": ["backup", "tree", "w:backups"],
    "backup-again": ["backup", "tree", "w:backups"],
    "ls-backup": ["ls", "--uri", "w:backups/Latest/sub"],
    "unlink": ["unlink", "w:sub/moved"],
    "unlink-missing": ["unlink", "w:sub/moved"],
    "ls-after-all": ["ls", "w:sub"],
}

_CLOCK = re.compile(r"\d+h \d+m \d+s|\d{4}-\d\d-\d\d_\d\d:\d\d:\d\dZ|elapsed time: .*|\d+\.\d+ (?=seconds)")
_ENCODED = re.compile(r"(size-directories|largest-directory)(?=\W).*")
"""Entries hold times whose digits are as many as they happen to be."""


@define
class Side:
    """A directory with a node.url, for the commands of one side."""

    client: WebClient
    folder: Path
    done: dict[str, Done] = field(factory=dict)

    def run(self) -> None:
        """All commands."""
        node = self.folder / "node"
        (node / "private").mkdir(parents=True)
        (node / "node.url").write_text(self.client.url + "\n")
        make_tree(self.folder / "tree")
        for name, arguments in COMMANDS.items():
            ended = subprocess.run(
                [warm_tahoe(), "-d", str(node), *arguments],
                cwd=self.folder,
                capture_output=True,
                timeout=COMMAND_S,
                env={**child_environment(), "LC_ALL": "C.UTF-8"},
                check=False,
            )
            self.done[name] = Done(ended.returncode, self._alike(ended.stdout), self._alike(ended.stderr))

    def _alike(self, data: bytes) -> str:
        alike = Alike({}, frozenset())
        text = data.decode()
        if text.startswith("{\n"):
            return json.dumps(alike.value(json.loads(text)), sort_keys=True)
        text = alike.text(text.replace(str(self.folder), "<folder>"))
        return _ENCODED.sub(r"\1 <size>", _CLOCK.sub("<time>", text.replace(self.client.url, "<here>/")))


def make_tree(root: Path) -> None:
    """Small and large files, an empty one, an empty directory, names that are not ASCII."""
    (root / "sub" / "empty").mkdir(parents=True)
    (root / "small").write_bytes(b"small")
    (root / "nothing").write_bytes(b"")
    (root / "large").write_bytes(random.Random(2).randbytes(300_000))
    (root / "sub" / "b\u00fc").write_bytes(random.Random(1).randbytes(3000))


@pytest.fixture(scope="module")
def sides(gateways: Gateways, tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    """1.20's gateway and ours, after all commands."""
    root = tmp_path_factory.mktemp("commands")
    both = Side(gateways.tahoe, root / "theirs"), Side(gateways.ours, root / "ours")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(Side.run, both))
    return both


@pytest.mark.parametrize("name", COMMANDS)
def test_command_of_tahoe_when_given_to_our_gateway_does_and_prints_the_same(
    sides: tuple[Side, Side], name: str
) -> None:
    theirs, ours = (side.done[name] for side in sides)
    if theirs.status != 0 or theirs.err.startswith(
        '"Error'
    ):  # The words of an error are each gateway's own; where it is printed and its code are not.
        assert (ours.status, bool(ours.out), first_line(ours.err)) == (
            theirs.status,
            bool(theirs.out),
            first_line(theirs.err),
        )
        return
    assert ours == theirs


def first_line(text: str) -> str:
    """Where the CLI puts the code of an answer."""
    return text.partition("\n")[0]


def test_files_when_fetched_through_our_gateway_are_the_same(sides: tuple[Side, Side]) -> None:
    for side in sides:
        tree = local_files(side.folder / "tree")
        assert local_files(side.folder / "back" / "tree") == tree
        assert (side.folder / "got").read_bytes() == (side.folder / "tree" / "large").read_bytes()
        assert (side.folder / "got-mutable").read_bytes() == (side.folder / "tree" / "sub" / "b\u00fc").read_bytes()
        assert not (side.folder / "got-nothing").exists()


def test_commands_when_all_are_done_were_mostly_successful(sides: tuple[Side, Side]) -> None:
    failed = {name for name, done in sides[0].done.items() if done.status != 0}
    assert failed == {
        "create-alias-again",
        "put-over-directory",
        "get-missing",
        "mv-over-directory",
        "ls-missing",
        "unlink-missing",
    }
