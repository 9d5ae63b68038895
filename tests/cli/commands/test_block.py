"""`grid block`, `grid blocks`, `grid unblock`: they write the file that the gateway reads, and take out what they wrote."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from grid.caps import UnknownCap, parse_cap
from grid.cli.commands.block import _complete_blocks, unblock
from grid.cli.main import cli
from grid.codec import base32
from grid.gateway.shared.blacklist import Blacklist
from tests.support.memory_command import MemoryCommand


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    found = MemoryCommand(tmp_path / "client", monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "c"):
        Path(name).write_bytes(name.encode() * 1000)
    for path in ("photos/a", "photos/sub/b", "c"):
        found.succeed("put", path[-1], f"work:{path}")
    return found


def index_of(command: MemoryCommand, path: str) -> bytes:
    facts = json.loads(command.succeed("ls", "--json", path))[1]
    cap = parse_cap(facts.get("rw_uri") or facts["ro_uri"])
    assert not isinstance(cap, UnknownCap) and cap.storage_index is not None
    return cap.storage_index


def blacklist(command: MemoryCommand) -> Blacklist:
    """As a running gateway reads it."""
    return Blacklist(command.path / "access.blacklist")


def test_directory_is_blocked_with_everything_below_it_and_shown_again(command: MemoryCommand) -> None:
    below = [index_of(command, f"work:{path}") for path in ("photos", "photos/a", "photos/sub", "photos/sub/b")]
    other = index_of(command, "work:c")
    gateway = blacklist(command)
    assert gateway.reason(below[0]) is None

    ended = command.run("block", "--reason", " ask  me ", "work:photos")
    assert (ended.code, ended.out) == (0, "blocked: work:photos, 4 objects\n")
    assert "`grid unblock 'work:photos'`" in ended.err and "URI:" not in ended.err
    assert [gateway.reason(index) for index in (*below, other)] == ["ask me"] * 4 + [None]
    assert (command.path / "access.blacklist").stat().st_mode & 0o777 == 0o600
    (line,) = json.loads(command.succeed("blocks", "--json"))
    assert line == {
        "path": "work:photos",
        "storage_index": base32.encode(below[0]),
        "objects": 4,
        "reason": "ask me",
    }

    assert command.succeed("unblock", "work:photos/") == "unblocked: work:photos/, 4 objects"
    assert [gateway.reason(index) for index in below] == [None] * 4
    assert "not blocked" in command.fail(4, "unblock", "work:photos")
    assert command.run("blocks").err == "nothing is blocked; `grid block PATH` blocks something\n"


def test_what_was_added_later_is_blocked_by_the_same_command_again(command: MemoryCommand) -> None:
    command.succeed("block", "work:photos")
    command.succeed("rm", "work:photos/a")
    command.succeed("mkdir", "work:photos/new")
    assert command.succeed("block", "work:photos") == "blocked: work:photos, 4 objects"
    (line,) = json.loads(command.succeed("blocks", "--json"))
    assert line["objects"] == 5, "what is no longer in it stays blocked"


def test_what_is_removed_from_the_grid_is_unblocked_by_its_name_or_index(command: MemoryCommand) -> None:
    index = base32.encode(index_of(command, "work:c"))
    for given in ("work:c", index):
        command.succeed("block", "work:photos/a")
        command.succeed("block", "work:c")
        command.succeed("rm", "work:c")
        assert command.succeed("unblock", given) == f"unblocked: {given}, 1 object"
        command.succeed("put", "c", "work:c")
    assert [line["path"] for line in json.loads(command.succeed("blocks", "--json"))] == ["work:photos/a"]


def test_object_that_another_block_has_stays_blocked_and_the_command_says_so(command: MemoryCommand) -> None:
    command.succeed("block", "work:photos")
    command.succeed("block", "work:photos/a")
    ended = command.run("unblock", "work:photos/a")
    assert ended.out == "unblocked: work:photos/a, 0 objects\n" and "1 object in it stays blocked" in ended.err
    command.succeed("unblock", "work:photos/a")
    assert blacklist(command).reason(index_of(command, "work:photos/a")) is None
    assert blacklist(command).reason(index_of(command, "work:photos/sub/b")) == "no longer shared"


def test_capability_is_blocked_without_appearing_anywhere(command: MemoryCommand) -> None:
    cap = command.succeed("ls", "--readonly-uri", "work:").splitlines()[-1].split()[-1]
    ended = command.run("block", cap)
    assert ended.code == 0 and "URI:…" in ended.out
    for text in (ended.out, ended.err, (command.path / "access.blacklist").read_text()):
        assert "URI:" not in text.replace("URI:…", "")
    command.succeed("unblock", cap)


def test_what_cannot_be_blocked_is_refused_and_nothing_is_written(command: MemoryCommand) -> None:
    Path("small").write_text("x")
    command.succeed("put", "small", "work:small")
    assert "its capability contains it" in command.fail(1, "block", "work:small")
    command.fail(4, "block", "work:none")
    command.fail(4, "unblock", "work:none")
    for reason in ("", " ", "x" * 201, "a\x07"):
        assert "--reason" in command.fail(2, "block", "--reason", reason, "work:c")
    ended = command.run("--gateway", "http://127.0.0.1:1/", "blocks")
    assert ended.code == 2 and "your own gateway" in ended.err
    assert not (command.path / "access.blacklist").exists()


def test_directory_that_cannot_be_read_is_blocked_itself_and_reported(command: MemoryCommand) -> None:
    cap = parse_cap(f"URI:DIR2-CHK:{'a' * 26}:{'a' * 52}:3:10:500")
    assert not isinstance(cap, UnknownCap) and cap.storage_index is not None
    command.succeed("ln", cap.to_string(), "work:photos/lost")
    ended = command.run("block", "work:photos")
    assert ended.code == 1 and "could not be read: lost" in ended.err
    assert (
        ended.out == "blocked: work:photos, 5 objects\n"
        and blacklist(command).reason(cap.storage_index) == "no longer shared"
    )


def test_blocked_paths_are_completed(command: MemoryCommand) -> None:
    command.succeed("block", "work:photos")
    root = click.Context(cli, info_name="grid")
    root.params = {"node_directory": str(command.path)}
    context, parameter = click.Context(unblock, parent=root), unblock.params[0]
    assert [item.value for item in _complete_blocks(context, parameter, "wo")] == ["work:photos"]
    assert _complete_blocks(context, parameter, "x") == []
