"""`grid undo`: reverts what each command did, and nothing that others did meanwhile."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from tests.support.memory_command import MemoryCommand


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("one", "two", "three"):
        Path(name).write_text(name * 50)
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


def state(command: MemoryCommand) -> dict[str, str]:
    """Every path of the grid, and its capability."""
    lines = command.succeed("manifest", "work:").splitlines()
    return {path: cap for cap, _, path in (line.partition(" ") for line in lines)}


@pytest.mark.parametrize(
    "arguments",
    [
        ["rm", "work:a"],
        ["unlink", "work:dir"],
        ["mv", "work:a", "work:new"],
        ["mv", "work:a", "work:b"],
        ["mv", "work:a", "work:dir/b"],
        ["mv", "work:a", "work:dir/c"],
        ["mv", "work:dir", "work:other/"],
        ["mv", "work:dir", "work:b"],
        ["mv", "work:dir/below", "work:b"],
        ["ln", "work:a", "work:b"],
        ["put", "three", "work:a"],
        ["cp", "three", "work:dir/c"],
        ["cp", "-r", "tree", "work:"],
    ],
    ids=" ".join,
)
def test_change_when_undone_leaves_everything_as_it_was(command: MemoryCommand, arguments: list[str]) -> None:
    for path in ("a", "dir/c", "dir/below/d", "tree/x", "tree/deep/y"):
        command.succeed("put", "one", f"work:{path}")
    command.succeed("put", "two", "work:b")
    command.succeed("mkdir", "work:other")
    Path("tree/deep").mkdir(parents=True)
    for name in ("tree/x", "tree/deep/y"):
        Path(name).write_text(name * 50)
    before = state(command)
    command.succeed(*arguments)
    assert state(command) != before
    assert command.succeed("undo").startswith(f"Undid change 1: {arguments[0]} of ")
    assert state(command) == before
    assert command.fail(4, "undo") == "there is nothing to undo"


@pytest.mark.parametrize("word", ["pack", "unpack"])
def test_files_that_were_packed_or_unpacked_are_linked_as_before(command: MemoryCommand, word: str) -> None:
    Path("tree/sub").mkdir(parents=True)
    for name in ("tree/a", "tree/b", "tree/sub/c"):
        Path(name).write_text(name * 50)
    command.succeed("cp", "-r", "--pack" if word == "unpack" else "--no-pack", "tree", "work:")
    before = state(command)
    command.succeed(word, "work:tree")
    assert state(command) != before
    assert command.succeed("undo").startswith(f"Undid change 1: {word} of ")
    assert state(command) == before


def test_snapshots_when_forgotten_come_back_with_their_notes(command: MemoryCommand) -> None:
    Path("tree").mkdir()
    for number in range(3):
        Path("tree/a").write_text(f"{number}" * 100)
        command.succeed("backup", "--tag", "t", "tree", "work:b")
        command.wait(10)
    before = command.succeed("snapshots", "--json", "work:b"), state(command)
    command.succeed("forget", "--keep-last", "1", "work:b")
    assert state(command) != before[1]
    command.succeed("undo")
    assert (command.succeed("snapshots", "--json", "work:b"), state(command)) == before


def test_command_that_loses_nothing_records_no_change(command: MemoryCommand) -> None:
    command.succeed("put", "one", "work:a")
    command.succeed("put", "one", "work:a")
    command.succeed("mkdir", "work:dir")
    command.succeed("ln", "work:a", "work:b")
    command.succeed("mv", "work:a", "work:a")
    command.run("rm", "work:none")
    command.succeed("cp", "two", "work:c")
    assert json.loads(command.succeed("undo", "--list", "--json"))["changes"] == []


def test_changes_are_listed_and_undone_by_number(command: MemoryCommand) -> None:
    for name in ("one", "two", "three"):
        command.succeed("put", name, f"work:{name}")
    for name in ("one", "two", "three"):
        command.succeed("rm", f"work:{name}")
    heading, *lines = command.succeed("undo", "--list").splitlines()
    assert heading.split() == ["CHANGE", "TIME", "COMMAND", "ENTRIES"]
    assert [(line.split()[0], *line.split()[3:]) for line in lines] == [
        ("3", "rm", "work:three"), ("2", "rm", "work:two"), ("1", "rm", "work:one"),
    ]  # fmt: skip
    done = json.loads(command.succeed("undo", "--json", "2"))
    assert (done["event"], done["number"], done["command"]) == ("undo", 2, "rm")
    assert (done["links"], done["replaced"]) == ([{"path": "work:two", "action": "restored"}], [])
    assert command.names() == ["two"]
    assert "there is no change 2; `grid undo --list` shows" in command.fail(4, "undo", "2")
    command.succeed("undo")
    assert command.names() == ["three", "two"]
    (left,) = json.loads(command.succeed("undo", "--list", "--json"))["changes"]
    assert (left["number"], left["paths"]) == (1, ["work:one"])


def test_entry_that_was_changed_since_stays_unless_forced(command: MemoryCommand) -> None:
    command.succeed("put", "one", "work:a")
    command.succeed("rm", "work:a")
    new = command.succeed("put", "two", "work:a")
    refused = json.loads(command.run("undo", "--json").err)["error"]
    assert (refused["kind"], refused["exit_code"]) == ("conflict", 1)
    assert refused["message"].startswith("work:a was changed since, so nothing was undone; --force")
    assert command.succeed("ls", "--uri", "work:a").split()[-1] == new
    done = json.loads(command.succeed("undo", "--force", "--json"))
    assert done["replaced"] == [{"path": "work:a", "cap": new}]
    # What was replaced by force can be undone too.
    command.succeed("undo")
    assert command.succeed("ls", "--uri", "work:a").split()[-1] == new


def test_change_of_several_entries_is_undone_as_a_whole_or_not_at_all(command: MemoryCommand) -> None:
    Path("tree").mkdir()
    for name in ("a", "b"):
        Path("tree", name).write_text(f"old {name}" * 30)
    command.succeed("cp", "-r", "tree", "work:")
    for name in ("a", "b"):
        Path("tree", name).write_text(f"new {name}" * 30)
    command.succeed("cp", "-r", "tree", "work:")
    command.succeed("ln", "work:tree/a", "work:keep")
    command.succeed("rm", "work:tree/a")
    before = state(command)
    assert command.fail(1, "undo", "1").startswith("work:tree/a is gone since, so nothing was undone")
    assert state(command) == before
    command.succeed("undo", "2")
    command.succeed("undo", "1")
    command.succeed("get", "work:tree/a", "back")
    assert Path("back").read_text() == "old a" * 30


def test_move_when_its_target_was_changed_since_leaves_that_alone_if_forced(command: MemoryCommand) -> None:
    command.succeed("put", "one", "work:a")
    command.succeed("mv", "work:a", "work:b")
    mine = command.succeed("put", "two", "work:b")
    assert command.fail(1, "undo", "1").startswith("work:b was changed since")
    done = json.loads(command.succeed("undo", "--force", "--json", "1"))
    actions = {each["path"]: each["action"] for each in done["links"]}
    assert actions == {"work:a": "restored", "work:b": "left alone"}
    assert command.succeed("ls", "--uri", "work:b").split()[-1] == mine


def test_directory_is_not_moved_back_below_itself(command: MemoryCommand) -> None:
    command.succeed("mkdir", "work:p/a")
    command.succeed("mv", "work:p/a", "work:a")
    command.succeed("mv", "work:p", "work:a/p")
    before = state(command)
    assert "cannot be moved" in command.fail(1, "undo", "1")
    assert state(command) == before


def test_change_that_was_undone_by_hand_leaves_nothing_to_undo(command: MemoryCommand) -> None:
    cap = command.succeed("put", "one", "work:a")
    command.succeed("rm", "work:a")
    command.succeed("ln", cap, "work:a")
    assert json.loads(command.succeed("undo", "--json"))["links"] == [{"path": "work:a", "action": "unchanged"}]
    assert command.fail(4, "undo") == "there is nothing to undo"


def test_changes_of_other_client_directories_are_not_shown(
    command: MemoryCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command.succeed("put", "one", "work:a")
    command.succeed("rm", "work:a")
    other = MemoryCommand(tmp_path / "other", monkeypatch, capsys)
    assert other.fail(4, "undo", "1") == "there is nothing to undo"
    assert "0 changes" in other.run("undo", "--list").err


def test_hint_on_a_terminal_names_undo_and_shows_no_capability(command: MemoryCommand) -> None:
    command.on_terminal = True
    command.succeed("put", "one", "work:a")
    assert command.run("put", "two", "work:a").err == "Stored as work:a\nReplaced work:a. To undo this: grid undo\n"
    assert command.run("rm", "work:a").err == "To undo this: grid undo\n"


def test_command_whose_change_cannot_be_recorded_warns_and_continues(command: MemoryCommand, tmp_path: Path) -> None:
    (tmp_path / "state" / "grid").mkdir(parents=True)
    (tmp_path / "state" / "grid" / "undo").write_bytes(b"URI:DIR2:secret\n")
    os.chmod(tmp_path / "state" / "grid" / "undo", 0o600)
    command.succeed("put", "one", "work:a")
    removed = command.run("rm", "work:a")
    assert (removed.code, removed.out) == (0, "200 OK\n")
    assert removed.err.startswith("grid: warning: not kept for `grid undo`: ") and "secret" not in removed.err
    assert command.fail(1, "undo").endswith("remove it to start over")
    assert command.names() == []
    command.succeed("put", "one", "work:b")
    told = json.loads(command.run("rm", "--json", "work:b").err)
    assert told["event"] == "warning" and told["message"].startswith("not kept for `grid undo`: ")


def test_options_that_contradict_each_other_are_refused(command: MemoryCommand) -> None:
    for arguments in (["--list", "3"], ["--list", "--force"]):
        assert "--list cannot be used with N or --force" in command.fail(2, "undo", *arguments)


def test_change_is_reported_as_undone_even_if_the_journal_cannot_be_written(
    command: MemoryCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    command.succeed("put", "one", "work:a")
    before = state(command)
    command.succeed("rm", "work:a")
    with monkeypatch.context() as patch:
        patch.setattr("grid.cli.undo.journal.write_atomically", full)
        ended = command.run("undo")
    assert ended.code == 0 and "restored: work:a" in ended.out
    assert "was undone, but is still listed" in ended.err and "No space left" in ended.err
    assert state(command) == before


def test_change_that_stays_listed_is_a_warning_in_json(command: MemoryCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    command.succeed("put", "one", "work:a")
    command.succeed("rm", "work:a")
    with monkeypatch.context() as patch:
        patch.setattr("grid.cli.undo.journal.write_atomically", full)
        ended = command.run("undo", "--json")
    told = json.loads(ended.err)
    assert ended.code == 0 and json.loads(ended.out)["event"] == "undo"
    assert told["event"] == "warning" and "was undone, but is still listed" in told["message"]
    assert "unchanged: work:a" in command.succeed("undo")
