"""Hostile directory entries: no control character in them reaches the terminal."""

from __future__ import annotations

import pytest

from grid.caps import KnownCap, UnknownChild, parse_cap
from grid.cli.commands.ls import Columns, listing_lines
from grid.cli.terminal.columns import WIDEST_COLUMN
from grid.codec.base32 import encode
from grid.codec.netstring import pack_netstring
from grid.directory.pack import Child
from grid.node.local_grid import LocalGrid
from tests.cli.tree_grid import TreeClient, make_tree_client


@pytest.fixture(scope="module")
def client(local_grid: LocalGrid, tmp_path_factory: pytest.TempPathFactory) -> TreeClient:
    """A client directory."""
    return make_tree_client(local_grid, tmp_path_factory.mktemp("hostile") / "client")


def _literal(name: bytes, read: bytes) -> str:
    """A directory with one entry, all of it in its capability."""
    fields = (name, read, b"", b"{}")
    return f"URI:DIR2-LIT:{encode(pack_netstring(b''.join(map(pack_netstring, fields))))}"


HOSTILE = _literal(b"\x1b[2Ja", b"imm.\x1b[31m\x00\x07\xc2\x9b")


@pytest.mark.parametrize(
    "command",
    [
        ["ls"],
        ["ls", "-l", "--uri", "--readonly-uri"],
        ["ls", "-R", "--uri"],
        ["ls", "--json"],
        ["manifest"],
        ["manifest", "--json"],
        ["deep-check", "-v"],
        ["stats"],
        ["cp", "-r"],
        ["restore"],
    ],
)
def test_command_when_entries_hold_controls_prints_none_of_them(client: TreeClient, command: list[str]) -> None:
    target = [str(client.directory / "copied")] if command[0] in ("cp", "restore") else []
    outcome = client.run(*command, HOSTILE, *target)
    shown = outcome.out.decode() + outcome.err
    assert shown
    assert all(character.isprintable() or character == "\n" for character in shown), repr(shown)
    assert "Traceback" not in shown


def test_directory_when_its_bytes_are_invalid_is_reported_in_these_words(client: TreeClient) -> None:
    outcome = client.run("ls", f"URI:DIR2-LIT:{encode(b'something else')}")
    assert outcome.code == 6
    assert "not a directory, or its contents are damaged" in outcome.err


def test_listing_when_one_name_is_very_long_does_not_make_the_other_lines_as_long() -> None:
    cap = parse_cap("URI:LIT:nbswy3dp")
    assert isinstance(cap, KnownCap)
    children = {str(number): Child(target=cap) for number in range(100)} | {"n" * 60_000: Child(target=cap)}
    children["odd"] = Child(target=UnknownChild(read=b"imm." + b"z" * 50_000))
    lines = listing_lines(children, Columns(long=True, uri=True), 0.0)
    assert sum(map(len, lines)) < 60_000 + 50_000 + len(lines) * (3 * WIDEST_COLUMN)
