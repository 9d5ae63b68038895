"""`grid cp` with patterns and --dry-run, `grid mv` of several entries, and `grid ls -a`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.memory_command import MemoryCommand


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    for name in ("tree/a.txt", "tree/b.tmp", "tree/sub/c.txt", "tree/sub/d.tmp", "tree/only/e.tmp"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name * 20)
        os.utime(name, (1_000_000_000, 1_000_000_000))
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


def found(command: MemoryCommand, path: str = "work:") -> set[str]:
    return set(command.succeed("find", path).split())


def test_tree_when_copied_to_the_grid_holds_what_is_included_and_not_excluded(command: MemoryCommand) -> None:
    command.succeed("cp", "-r", "--include", "*.txt", "--exclude", "/sub", "tree", "work:")
    assert found(command) == {"tree", "tree/a.txt"}
    command.succeed("cp", "-r", "--exclude", "*.tmp", "tree", "work:all")
    assert {name for name in found(command, "work:all") if "." in name} == {
        "tree/a.txt",
        "tree/sub/c.txt",
    }
    assert "tree/only" in found(command, "work:all")


def test_tree_when_copied_from_the_grid_holds_what_is_included_and_not_excluded(command: MemoryCommand) -> None:
    command.succeed("cp", "-r", "tree", "work:")
    command.succeed("cp", "-r", "--exclude", "sub/", "--include", "*.tmp", "work:tree", "back")
    assert {str(path) for path in Path("back").rglob("*.*")} == {"back/tree/b.tmp", "back/tree/only/e.tmp"}


def test_patterns_when_nothing_matches_are_an_error(command: MemoryCommand) -> None:
    assert "matches" in command.fail(4, "cp", "-r", "--include", "*.none", "tree", "work:")
    assert "matches" in command.fail(4, "cp", "--exclude", "*.txt", "tree/a.txt", "work:")
    assert "names nothing" in command.fail(2, "cp", "-r", "--include", "/", "tree", "work:")


def test_named_files_when_excluded_are_left_out(command: MemoryCommand) -> None:
    command.succeed("cp", "--exclude", "*.tmp", "tree/a.txt", "tree/b.tmp", "work:")
    assert command.names() == ["a.txt"]


def test_dry_run_says_what_would_be_done_and_changes_nothing(command: MemoryCommand) -> None:
    first = command.succeed("cp", "-r", "--dry-run", "--exclude", "*.tmp", "tree", "work:new")
    assert first.splitlines() == [
        "would copy work:new/tree/a.txt",
        "would copy work:new/tree/sub/c.txt",
        "2 files would be copied, 0 left as they are",
    ]
    assert command.names() == []
    command.succeed("cp", "-r", "tree", "work:")
    command.succeed("cp", "-r", "work:tree", "work:copy")
    command.succeed("cp", "tree/b.tmp", "work:tree/a.txt")
    second = json.loads(command.succeed("cp", "-r", "--dry-run", "--json", "work:tree", "work:copy"))
    assert second["planned"] == [{"do": "replace", "path": "work:copy/tree/a.txt"}]
    command.succeed("get", "work:copy/tree/a.txt", "still")
    assert Path("still").read_text() == "tree/a.txt" * 20
    kept = command.succeed("cp", "-r", "-n", "--dry-run", "tree", "work:")
    assert kept == "0 files would be copied, 5 left as they are"


def test_dry_run_to_this_machine_and_inside_the_grid_changes_nothing(command: MemoryCommand) -> None:
    command.succeed("cp", "-r", "tree", "work:")
    Path("back/tree").mkdir(parents=True)
    Path("back/tree/a.txt").write_text("older")
    lines = command.succeed("cp", "-r", "--dry-run", "work:tree", "back").splitlines()
    assert "would replace back/tree/a.txt" in lines and "would copy back/tree/sub/c.txt" in lines
    assert lines[-1] == "4 files would be copied, 1 replaced, 0 left as they are"
    assert [path for path in Path("back").rglob("*") if path.is_file()] == [Path("back/tree/a.txt")]
    linked = command.succeed("cp", "--dry-run", "work:tree/a.txt", "work:copy").splitlines()
    assert linked == ["would link work:copy", "0 files would be copied, 1 linked, 0 left as they are"]
    assert command.names() == ["tree"]


def test_copy_on_a_terminal_counts_what_it_did(command: MemoryCommand) -> None:
    assert command.succeed("cp", "-r", "tree", "work:") == "Success: files copied", "programs get 1.20's words"
    command.on_terminal = True
    count = len([each for each in Path("tree").rglob("*") if each.is_file()])
    assert command.run("cp", "-r", "tree", "work:").out.strip() == f"{count} files copied"
    assert command.run("cp", "-r", "work:tree", "work:again").out.strip() == f"0 files copied, {count} linked"
    assert command.run("cp", "-r", "work:tree", "back").out.strip() == f"{count} files copied"
    assert command.run("cp", "-r", "work:tree", "back").out.strip() == f"0 files copied, {count} already there"


def test_dry_run_asks_nothing(command: MemoryCommand) -> None:
    command.on_terminal = True
    assert "contradict" in command.run("cp", "-i", "--dry-run", "tree/a.txt", "work:a").err


def test_entries_when_moved_together_go_into_the_directory(command: MemoryCommand) -> None:
    command.succeed("cp", "-r", "tree", "work:")
    command.succeed("mkdir", "work:into")
    assert command.succeed("mv", "work:tree/a.txt", "work:tree/sub", "work:into") == "OK"
    assert found(command, "work:into") >= {"a.txt", "sub/c.txt"}
    assert set(command.names("work:tree")) == {"b.tmp", "only"}
    command.succeed("cp", "tree/a.txt", "work:a.txt")
    done = json.loads(command.succeed("mv", "-n", "--json", "work:a.txt", "work:tree/b.tmp", "work:into/"))
    assert (done["moved"], done["skipped"]) == (["work:into/b.tmp"], ["work:into/a.txt"])


def test_entries_when_they_cannot_all_be_moved_stay_where_they_are(command: MemoryCommand) -> None:
    command.succeed("cp", "-r", "tree", "work:")
    command.succeed("mkdir", "work:into")
    before = found(command)
    assert command.fail(4, "mv", "work:tree/a.txt", "work:tree/none", "work:into")
    assert command.fail(1, "mv", "work:tree/a.txt", "work:tree/sub", "work:tree/b.tmp")
    command.fail(4, "mv", "work:tree/a.txt", "work:tree/sub", "work:nowhere")
    command.succeed("mkdir", "work:other/sub")
    assert "two of these are called 'sub'" in command.fail(1, "mv", "work:tree/sub", "work:other/sub", "work:into")
    assert found(command) - {"other", "other/sub"} == before


def test_listing_when_all_is_asked_for_is_the_same(command: MemoryCommand) -> None:
    command.succeed("cp", "tree/a.txt", "work:.hidden")
    assert command.succeed("ls", "-la", "work:") == command.succeed("ls", "-l", "work:")
    assert command.succeed("ls", "-a", "work:") == ".hidden"


def test_mkdir_when_written_as_for_a_local_directory_makes_all_of_the_path_and_keeps_what_is_there(
    command: MemoryCommand,
) -> None:
    made = command.succeed("mkdir", "-p", "work:a/b/c")
    assert command.succeed("mkdir", "--parents", "work:a/b/c") == made
    assert command.names("work:a/b") == ["c"]
