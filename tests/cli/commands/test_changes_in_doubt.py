"""Changes that too few servers take, because some are full: commands say that they hold, and `grid undo` takes them back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from grid.errors import NoSpaceError
from tests.support.memory_command import MemoryCommand

MAY_HOLD = 8


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Path("two").write_text("two" * 50)
    command = MemoryCommand(tmp_path / "client", monkeypatch, capsys)
    for path in ("a", "b", "dir/c", "dir/below/d"):
        Path("file").write_text(path * 50)
        command.succeed("put", "file", f"work:{path}")
    return command


def fill(command: MemoryCommand, count: int, patch: pytest.MonkeyPatch) -> None:
    """Make that many of ten servers refuse changes of mutable files."""

    async def refuse(*arguments: object) -> None:
        raise NoSpaceError("server three refused with status 507: No space left on device")

    for server in command.grid.servers[:count]:
        patch.setattr(server, "test_and_write", refuse)


def state(command: MemoryCommand) -> Mapping[str, str]:
    lines = command.succeed("manifest", "work:").splitlines()
    return {path: cap for cap, _, path in (line.partition(" ") for line in lines)}


@pytest.mark.parametrize(
    "arguments",
    [
        ["rm", "work:a"],
        ["mv", "work:a", "work:new"],
        ["mv", "work:a", "work:b"],
        ["mv", "work:a", "work:dir/c"],
        ["ln", "work:dir/c", "work:b"],
        ["put", "two", "work:a"],
        ["cp", "two", "work:dir/c"],
    ],
    ids=" ".join,
)
def test_change_that_holds_although_servers_are_full_is_said_to_hold_and_can_be_undone(
    command: MemoryCommand, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(command)
    with monkeypatch.context() as patch:
        fill(command, 4, patch)
        ended = command.run(*arguments)
    assert state(command) != before
    assert "only 6 servers took the new version, and 7 are needed; the change is in force all the same" in ended.err
    assert "No space left on device" in ended.err and "grid check --repair" in ended.err
    assert ended.code == MAY_HOLD
    command.succeed("undo")
    assert state(command) == before


@pytest.mark.parametrize("arguments", [["rm", "work:a"], ["mv", "work:a", "work:new"], ["put", "two", "work:a"]])
def test_change_that_no_server_takes_is_said_to_have_changed_nothing(
    command: MemoryCommand, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(command)
    with monkeypatch.context() as patch:
        fill(command, 10, patch)
        ended = command.run("--json", *arguments)
    told = json.loads(ended.err.splitlines()[-1])["error"]
    assert (ended.code, told["kind"], told["exit_code"]) == (12, "no-space", 12)
    assert "nothing was changed" in told["message"]
    assert state(command) == before


def test_json_says_by_its_kind_that_the_change_may_hold(
    command: MemoryCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fill(command, 4, patch)
        ended = command.run("rm", "--json", "work:a")
    told = json.loads(ended.err.splitlines()[-1])["error"]
    assert (ended.code, told["kind"], told["exit_code"]) == (MAY_HOLD, "may-hold", MAY_HOLD)


def test_new_entry_and_new_directory_that_hold_are_there(
    command: MemoryCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    cap = command.succeed("mkdir")
    with monkeypatch.context() as patch:
        fill(command, 4, patch)
        assert command.run("put", "two", "work:new").code == MAY_HOLD
        assert command.run("ln", cap, "work:linked").code == MAY_HOLD
    assert {"new", "linked"} <= set(command.names())


def test_directory_is_healthy_after_a_repair_once_there_is_room(
    command: MemoryCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fill(command, 4, patch)
        command.run("rm", "work:a")
    assert command.run("check", "work:").code == 1
    assert command.succeed("check", "--repair", "work:").splitlines()[-1] == " repair successful"
    assert command.succeed("check", "work:").splitlines()[0] == "Summary: Healthy"


def test_copied_tree_and_forgotten_snapshots_that_hold_can_be_undone(
    command: MemoryCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("tree").mkdir()
    Path("home").mkdir()
    for word in ("first", "second"):
        Path("home", "z").write_text(f"{word} z" * 30)
        for name in ("x", "y"):
            Path("tree", name).write_text(f"{word} {name}" * 30)
        command.succeed("backup", "home", "work:kept")
        if word == "first":
            command.succeed("cp", "-r", "tree", "work:")
        command.wait(10)
    before = state(command)
    for arguments in (["cp", "-r", "tree", "work:"], ["forget", "--keep-last", "1", "work:kept"]):
        with monkeypatch.context() as patch:
            fill(command, 4, patch)
            ended = command.run(*arguments)
        assert ended.code in (1, MAY_HOLD) and "is in force all the same" in ended.err
        assert state(command) != before, ended
        command.succeed("undo")
        assert state(command) == before
