"""When commands replace existing files, when they do not, and how to undo it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from grid.cli.arguments.replacing import ReplacePolicy, make_policy, shell_word, time_of
from grid.cli.terminal.exit_codes import ExitCode
from tests.support.memory_command import MemoryCommand

OLD, NEW = 1_000_000_000, 3_000_000_000
"""Long before and long after the links of a test, whose clock is virtual."""


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        Path(name).write_text(name * 50)
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


def read(command: MemoryCommand, path: str) -> str:
    command.succeed("get", path, "read")
    return Path("read").read_text()


def age(path: str, moment: int) -> None:
    os.utime(path, (moment, moment))


def test_put_when_something_is_there_follows_the_options(command: MemoryCommand) -> None:
    command.succeed("put", "one", "work:f")
    kept = command.run("put", "-n", "two", "work:f")
    assert (kept.code, kept.out, kept.err) == (0, "", "work:f already exists; not replaced\n")
    assert json.loads(command.succeed("put", "-n", "--json", "two", "work:f"))["skipped"] is True
    age("two", OLD)
    command.succeed("put", "-u", "two", "work:f")
    assert read(command, "work:f") == "one" * 50
    age("two", NEW)
    command.succeed("put", "-u", "two", "work:f")
    assert read(command, "work:f") == "two" * 50
    command.succeed("put", "-n", "one", "work:new")
    assert read(command, "work:new") == "one" * 50


def test_get_when_the_file_is_there_follows_the_options(command: MemoryCommand) -> None:
    cap = command.succeed("put", "one", "work:f")
    kept = command.run("get", "-n", cap, "two")
    assert (kept.code, kept.err) == (0, "two already exists; not replaced\n")
    age("two", NEW)
    command.succeed("get", "-u", "work:f", "two")
    assert Path("two").read_text() == "two" * 50
    age("two", OLD)
    command.succeed("get", "-u", "work:f", "two")
    assert Path("two").read_text() == "one" * 50
    assert "a capability alone does not have" in command.fail(2, "get", "-u", cap, "two")
    for options in (["-n"], ["-u"]):
        assert "name FILE" in command.fail(2, "get", *options, "work:f")
        assert "name FILE" in command.fail(2, "get", *options, "work:f", "-")


def test_cp_when_something_is_there_follows_the_options(command: MemoryCommand) -> None:
    Path("tree").mkdir()
    for name in ("a", "b"):
        Path("tree", name).write_text(f"old {name}" * 30)
    command.succeed("cp", "-r", "tree", "work:")
    for name in ("a", "b"):
        Path("tree", name).write_text(f"new {name}" * 30)
    age("tree/a", NEW)
    age("tree/b", OLD)
    done = json.loads(command.succeed("cp", "-rn", "--json", "tree", "work:"))
    assert (done["files_copied"], done["files_skipped"], done["replaced"]) == (0, 2, [])
    done = json.loads(command.succeed("cp", "-ru", "--json", "tree", "work:"))
    assert (done["files_copied"], done["files_skipped"]) == (1, 1)
    assert read(command, "work:tree/a") == "new a" * 30 and read(command, "work:tree/b") == "old b" * 30
    assert [each["path"] for each in done["replaced"]] == ["work:tree/a"]
    # And the way back.
    Path("tree/a").write_text("mine")
    command.succeed("cp", "-rn", "work:tree", ".")
    assert Path("tree/a").read_text() == "mine"
    age("tree/a", OLD)
    command.succeed("cp", "-ru", "work:tree", ".")
    assert Path("tree/a").read_text() == "new a" * 30
    assert Path("tree/b").read_text() == "old b" * 30
    # Single files, and links inside of the grid.
    kept = command.run("cp", "-n", "one", "work:tree/a")
    assert kept.out == "work:tree/a already exists; not replaced\n"
    assert command.succeed("cp", "-n", "work:tree/b", "work:tree/a") == "work:tree/a already exists; not replaced"
    assert command.succeed("cp", "-n", "work:tree/b", "two") == "two already exists; not replaced"
    assert read(command, "work:tree/a") == "new a" * 30 and Path("two").read_text() == "two" * 50


def test_mv_and_ln_when_something_is_there_follow_the_options(command: MemoryCommand) -> None:
    for name in ("one", "two"):
        command.succeed("put", name, f"work:{name}")
        command.wait(10)
    for verb in ("mv", "ln"):
        kept = command.run(verb, "-n", "work:one", "work:two")
        assert (kept.code, kept.out, kept.err) == (0, "", "work:two already exists; not replaced\n")
    assert json.loads(command.succeed("mv", "-u", "--json", "work:one", "work:two"))["skipped"] is True
    assert command.names() == ["one", "two"] and read(command, "work:two") == "two" * 50
    assert json.loads(command.succeed("mv", "-u", "--json", "work:two", "work:one"))["skipped"] is False
    assert command.names() == ["one"] and read(command, "work:one") == "two" * 50


def test_restore_when_something_is_there_follows_the_options(command: MemoryCommand) -> None:
    Path("tree").mkdir()
    Path("tree/a").write_text("backed up" * 30)
    age("tree/a", 2_000_000_000)
    command.succeed("backup", "tree", "work:b")
    Path("tree/a").write_text("mine")
    command.succeed("restore", "-n", "work:b/Latest", "tree")
    age("tree/a", NEW)
    command.succeed("restore", "-u", "work:b/Latest", "tree")
    assert Path("tree/a").read_text() == "mine"
    age("tree/a", OLD)
    command.succeed("restore", "-u", "work:b/Latest", "tree")
    assert Path("tree/a").read_text() == "backed up" * 30


def test_what_is_replaced_or_removed_is_in_json_with_its_capability(command: MemoryCommand) -> None:
    first = command.succeed("put", "one", "work:a b")
    again = json.loads(command.succeed("put", "--json", "one", "work:a b"))
    assert again["replaced"] == []
    put = json.loads(command.succeed("put", "--json", "two", "work:a b"))
    assert put["replaced"] == [{"path": "work:a b", "cap": first}]
    third = command.succeed("put", "one", "work:c")
    moved = json.loads(command.succeed("mv", "--json", "work:a b", "work:c"))
    assert moved["replaced"] == [{"path": "work:c", "cap": third}]
    linked = json.loads(command.succeed("ln", "--json", first, "work:c"))
    assert linked["replaced"] == [{"path": "work:c", "cap": put["cap"]}]
    removed = json.loads(command.succeed("rm", "--json", "work:c"))
    assert removed["removed"] == [{"path": "work:c", "cap": first}]
    copied = json.loads(command.succeed("cp", "--json", "one", "work:d"))
    assert copied["replaced"] == []


def test_undo_command_when_no_journal_can_be_kept_is_printed_to_a_terminal_and_works(
    command: MemoryCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_bytes(b"")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    warning = f"grid: warning: not kept for `grid undo`: {tmp_path}/state/grid/undo: File exists\n"
    command.on_terminal = True
    command.succeed("put", "one", "work:dir/it's here")
    directory = json.loads(command.succeed("ls", "--json", "work:dir"))[1]["rw_uri"]
    removed = command.run("rm", "-r", "work:dir")
    assert removed.out == "Removed work:dir\n"
    assert removed.err == f"{warning}To link it again:\n  grid ln {directory} work:dir\n"
    command.succeed("ln", *removed.err.split()[-2:])
    old = command.succeed("ls", "--uri", "work:dir/it's here").split()[-1]
    replaced = command.run("put", "two", "work:dir/it's here")
    assert replaced.err == (
        f"{warning}Stored as work:dir/it's here\nReplaced work:dir/it's here. To link it again:\n"
        f"  grid ln {old} 'work:dir/it'\"'\"'s here'\n"
    )
    gone = command.run("rm", f"{directory}/it's here")
    assert gone.err.startswith(f"{warning}To link it again:\n  grid ln URI:CHK:")
    assert gone.err.rstrip().endswith(f"'{directory}/it'\"'\"'s here'")


def test_undo_command_is_not_printed_without_a_terminal(command: MemoryCommand) -> None:
    for name in ("one", "two"):
        assert "URI" not in command.run("put", name, "work:f").err
    command.succeed("put", "one", "work:g")
    for arguments, out in ((["mv", "work:g", "work:f"], "OK\n"), (["unlink", "work:f"], "200 OK\n")):
        ended = command.run(*arguments)
        assert (ended.out, ended.err) == (out, "")


def test_directory_when_removed_with_or_without_r_is_unlinked(command: MemoryCommand) -> None:
    for options in ([], ["-r"], ["-R"], ["--recursive"]):
        command.succeed("mkdir", "work:dir/below")
        assert command.succeed("rm", *options, "work:dir") == "200 OK"
    assert command.names() == []


def test_several_paths_when_removed_are_one_change_and_a_missing_one_stops_none_of_the_others(
    command: MemoryCommand,
) -> None:
    for name in ("a", "b", "c", "kept"):
        command.succeed("put", "one", f"work:{name}")
    assert command.succeed("rm", "work:a", "work:b") == "200 OK\n200 OK"
    command.succeed("undo")
    assert command.names() == ["a", "b", "c", "kept"]
    ended = command.run("rm", "work:a", "work:none", "work:no/where", "work:b")
    assert (ended.code, ended.out) == (ExitCode.NOT_FOUND, "200 OK\n200 OK\n")
    assert "work:none: No such file or directory" in ended.err
    assert command.names() == ["c", "kept"]
    lines = command.succeed("rm", "--json", "-rf", "work:none", "work:no/where", "work:c").splitlines()
    assert [[one["path"] for one in json.loads(line)["removed"]] for line in lines] == [[], [], ["work:c"]]
    assert command.names() == ["kept"]


def test_root_when_removed_is_refused_before_anything_is_removed(command: MemoryCommand) -> None:
    command.succeed("put", "one", "work:a")
    ended = command.run("rm", "-f", "work:a", "work:")
    assert ended.err == "grid: work: is not an entry of a directory, so it cannot be removed\n"
    assert command.names() == ["a"]


@pytest.mark.parametrize(
    ("metadata", "moment"),
    [
        ({"mtime": 5, "tahoe": {"linkmotime": 7}}, 5.0),
        ({"tahoe": {"linkmotime": 7, "linkcrtime": 6}}, 7.0),
        ({"tahoe": {"linkcrtime": 6}}, 6.0),
        ({"tahoe": "nonsense", "ctime": 4.5}, 4.5),
        ({"mtime": "5", "tahoe": {"linkmotime": True}}, None),
        ({}, None),
    ],
)
def test_time_of_a_link_is_that_of_the_file_if_it_is_recorded(
    metadata: dict[str, object], moment: float | None
) -> None:
    assert time_of(metadata) == moment


def test_shell_word_when_it_has_control_characters_is_escaped() -> None:
    assert shell_word("work:a") == "work:a"
    assert shell_word("work:a b") == "'work:a b'"
    assert shell_word("w:\x1b[2J\n'\u2028") == "$'w:\\x1b[2J\\x0a\\'\\u2028'"


def test_question_when_there_is_a_terminal_may_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not ReplacePolicy().is_given
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    assert make_policy(interactive=True, update=True).ask
