"""The same commands of `tahoe` 1.20 and of `grid` on the same tree: the same output and aliases, and each sees the other's changes."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from perf.processes.clients import GridClient, TahoeClient
from perf.processes.process_grid import ClientSettings
from tests.interop.conftest import SECRETS, Pair
from tests.support.warm_programs import WarmGrid

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A mixed grid, two clients that share the alias `w`, and a tree that both have made."""
    root = tmp_path_factory.mktemp("commands") / "grid"
    with WarmGrid(root, introducer="tahoe", storage=["tahoe", "grid"] * 2, secrets=SECRETS) as grid:
        tahoe = grid.start_client(ClientSettings(kind="tahoe", needed=2, happy=3, total=4))
        ours = grid.start_client(ClientSettings(kind="grid", needed=2, happy=3, total=4))
        assert isinstance(tahoe, TahoeClient) and isinstance(ours, GridClient)
        grid.wait_connected(tahoe)
        grid.wait_connected(ours)
        pair = Pair(grid, tahoe, ours)
        _plant(pair, root)
        yield pair


def tahoe_cli(client: TahoeClient, *arguments: str, expected: tuple[int, ...] = (0,)) -> str:
    """What `tahoe` prints."""
    return client.run(*arguments, expected=expected).decode()


def grid_cli(client: GridClient, *arguments: str, expected: tuple[int, ...] = (0,)) -> str:
    """What `grid` prints."""
    return client.run(*arguments, expected=expected).decode()


def _plant(pair: Pair, root: Path) -> None:
    grid_cli(pair.ours, "create-alias", "w")
    shutil.copy(pair.ours.directory / "private" / "aliases", pair.tahoe.directory / "private" / "aliases")
    (root / "chk").write_bytes(random.Random(1).randbytes(30_000))
    (root / "small").write_bytes(b"small")
    grid_cli(pair.ours, "mkdir", "w:ours/below")
    tahoe_cli(pair.tahoe, "mkdir", "w:theirs")
    grid_cli(pair.ours, "put", str(root / "chk"), "w:ours/chk")
    grid_cli(pair.ours, "put", "-m", str(root / "chk"), "w:ours/sdmf")
    grid_cli(pair.ours, "put", "--format", "MDMF", str(root / "chk"), "w:theirs/mdmf")
    tahoe_cli(pair.tahoe, "put", str(root / "small"), "w:theirs/lit")
    tahoe_cli(pair.tahoe, "put", "-m", str(root / "chk"), "w:theirs/sdmf b\u00fc")
    tahoe_cli(pair.tahoe, "ln", "w:ours", "w:theirs/loop")


@pytest.mark.parametrize(
    "arguments",
    [
        ["ls", "w:"],
        ["ls", "w:ours"],
        ["ls", "-l", "w:ours"],
        ["ls", "-l", "-F", "w:theirs"],
        ["ls", "-F", "--uri", "w:theirs"],
        ["ls", "--readonly-uri", "w:ours"],
        ["ls", "-l", "w:theirs/lit"],
        ["manifest", "w:"],
        ["manifest", "--storage-index", "w:"],
        ["manifest", "--verify-cap", "w:"],
        ["manifest", "--repair-cap", "w:"],
        ["stats", "w:"],
        ["deep-check", "w:"],
        ["deep-check", "-v", "w:ours"],
        ["list-aliases"],
        ["list-aliases", "--readonly-uri"],
        ["check", "w:ours/chk"],
        ["check", "--verify", "w:theirs/lit"],
        ["check", "w:theirs/mdmf"],
    ],
    ids=" ".join,
)
def test_command_when_run_by_both_prints_the_same(pair: Pair, arguments: list[str]) -> None:
    assert grid_cli(pair.ours, *arguments) == tahoe_cli(pair.tahoe, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["ls", "--json", "w:ours"],
        ["ls", "--json", "w:theirs/lit"],
        ["list-aliases", "--json"],
        ["stats", "--raw", "w:"],
    ],
    ids=" ".join,
)
def test_json_when_printed_by_both_holds_the_same(pair: Pair, arguments: list[str]) -> None:
    assert json.loads(grid_cli(pair.ours, *arguments)) == json.loads(tahoe_cli(pair.tahoe, *arguments))


def test_manifest_lines_in_json_are_the_same(pair: Pair) -> None:
    ours, theirs = (
        [json.loads(line) for line in text.splitlines()]
        for text in (grid_cli(pair.ours, "manifest", "--raw", "w:"), tahoe_cli(pair.tahoe, "manifest", "--raw", "w:"))
    )
    assert ours == theirs


def test_changes_by_either_are_seen_by_the_other(pair: Pair) -> None:
    grid_cli(pair.ours, "mv", "w:ours/chk", "w:ours/below/moved")
    tahoe_cli(pair.tahoe, "mv", "w:ours/below/moved", "w:ours/chk")
    grid_cli(pair.ours, "ln", "w:ours/chk", "w:theirs/chk")
    tahoe_cli(pair.tahoe, "unlink", "w:theirs/chk")
    assert "chk" not in grid_cli(pair.ours, "ls", "w:theirs").split()
    for path in ("w:none", "w:ours/none/x"):
        # Of all commands 1.20 has a status of its own for `ls` alone; Grid has one for whatever is not found.
        tahoe_cli(pair.tahoe, "ls", path, expected=(2,))
        grid_cli(pair.ours, "ls", path, expected=(4,))
