"""`grid cat`, `find` and `du`, on a grid in memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.memory_command import MemoryCommand


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    command = MemoryCommand(tmp_path / "client", monkeypatch, capsys)
    for name, path in (("a" * 10, "a.txt"), ("b" * 300, "docs/b.txt"), ("c" * 2000, "docs/deep/c.jpg")):
        Path("file").write_text(name)
        command.succeed("put", "file", f"work:{path}")
    Path("file").write_text("changes")
    command.succeed("put", "--mutable", "file", "work:docs/mutable.txt")
    return command


def test_paths_below_a_directory_are_found_by_name_and_by_type(command: MemoryCommand) -> None:
    everything = ["a.txt", "docs", "docs/b.txt", "docs/deep", "docs/deep/c.jpg", "docs/mutable.txt"]
    assert sorted(command.succeed("find", "work:").splitlines()) == everything
    assert sorted(command.succeed("find", "work:", "--type", "d").splitlines()) == ["docs", "docs/deep"]
    assert command.succeed("find", "work:docs", "--name", "*.jpg") == "deep/c.jpg"
    assert command.succeed("find", "work:", "--name", "*.JPG") == ""
    (line,) = command.succeed("find", "--json", "--name", "[ab].*", "--type", "f", "work:docs").splitlines()
    assert json.loads(line) == {"event": "found", "path": "b.txt", "type": "file", "bytes": 300}


def test_directory_that_contains_itself_is_found_and_not_followed_again(command: MemoryCommand) -> None:
    command.succeed("ln", "work:docs", "work:docs/deep/again")
    assert command.succeed("find", "work:", "--name", "again") == "docs/deep/again"
    assert command.succeed("du", "-b", "--depth", "0", "work:").splitlines()[-1].split() == ["2317", "4", "."]


def test_name_that_moves_the_cursor_is_shown_with_escapes(command: MemoryCommand) -> None:
    command.succeed("mkdir", "work:x\x1b[2Jy")
    assert command.succeed("find", "work:", "--name", "x*") == '"x\\x1b[2Jy"'


def test_sizes_add_up_for_each_directory_down_to_the_depth(command: MemoryCommand) -> None:
    heading, *lines = command.succeed("du", "work:").splitlines()
    assert heading.split() == ["SIZE", "FILES", "DIRECTORY"]
    assert [line.split() for line in lines] == [["2.32", "kB", "4", "."], ["2.31", "kB", "3", "docs"]]
    deep = [json.loads(line) for line in command.succeed("du", "--json", "--depth", "2", "work:").splitlines()]
    assert [(each["path"], each["bytes"], each["files"]) for each in deep] == [
        (".", 2317, 4),
        ("docs", 2307, 3),
        ("docs/deep", 2000, 1),
    ]
    command.succeed("mkdir", "work:empty")
    assert command.succeed("du", "-b", "work:").splitlines()[-1].split() == ["0", "0", "empty"]


def test_file_that_is_linked_twice_counts_once(command: MemoryCommand) -> None:
    command.succeed("ln", "work:docs/deep/c.jpg", "work:again.jpg")
    assert command.succeed("du", "-b", "--depth", "0", "work:").splitlines()[-1].split() == ["2317", "4", "."]


@pytest.mark.parametrize("name", ["find", "du"])
def test_directory_that_cannot_be_read_is_named_and_the_rest_is_shown(command: MemoryCommand, name: str) -> None:
    lost = f"URI:DIR2-CHK:{'a' * 26}:{'a' * 52}:3:10:100"
    command.succeed("ln", lost, "work:docs/lost")
    ended = command.run(name, "work:")
    assert ended.code == 1 and "docs" in ended.out and "docs/lost" in ended.err and "URI:" not in ended.err
    assert json.loads(command.run(name, "--json", "work:").err)["error"]["path"] == "docs/lost"


@pytest.mark.parametrize("name", ["find", "du"])
def test_file_in_place_of_a_directory_is_a_wrong_type(command: MemoryCommand, name: str) -> None:
    assert "is not a directory" in command.fail(1, name, "work:a.txt")


def test_cat_of_a_directory_or_of_nothing_writes_nothing(command: MemoryCommand) -> None:
    assert "is a directory, not a file" in command.fail(1, "cat", "work:a.txt", "work:docs")
    assert "No such file" in command.fail(4, "cat", "work:a.txt", "work:none")
    assert "verify capability" in command.fail(7, "cat", f"URI:CHK-Verifier:{'a' * 26}:{'a' * 52}:3:10:100")
    assert command.run("cat", "work:a.txt", "work:none").out == ""
