"""Things that are not found: one line and one exit code, for any kind of object and any command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.memory_command import MemoryCommand

NOT_FOUND = 4


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    command = MemoryCommand(tmp_path / "client", monkeypatch, capsys)
    Path("file").write_bytes(b"x" * 100)
    command.succeed("put", "file", "work:dir/file")
    return command


COMMANDS = [
    ["ls", "PATH"],
    ["ls", "-R", "PATH"],
    ["ls", "--json", "PATH"],
    ["get", "PATH", "out"],
    ["mv", "PATH", "work:x"],
    ["ln", "PATH", "work:x"],
    ["unlink", "PATH"],
    ["rm", "PATH"],
    ["check", "PATH"],
    ["check", "--deep", "PATH"],
    ["check", "--verify", "PATH"],
    ["deep-check", "PATH"],
    ["repair", "PATH"],
    ["manifest", "PATH"],
    ["stats", "PATH"],
    ["cp", "PATH", "out"],
    ["cp", "-r", "PATH", "out"],
    ["restore", "PATH", "out"],
    ["restore", "--snapshot", "latest", "PATH", "out"],
    ["snapshots", "PATH"],
    ["cat", "PATH"],
    ["cat", "work:dir/file", "PATH"],
    ["find", "PATH"],
    ["du", "PATH"],
    ["forget", "--keep-last", "1", "PATH"],
    ["diff", "PATH", "work:dir"],
    ["diff", "work:dir", "PATH"],
]


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("work:none", "work:none"),
        ("work:dir/none", "work:dir/none"),
        ("work:none/below", "work:none"),
        ("nobody:x", "Unknown alias 'nobody': `grid create-alias nobody` creates"),
        ("none", "none"),
        ("work", "work"),
    ],
)
def test_path_of_the_grid_when_nothing_is_there_ends_with_one_status_and_one_line(
    command: MemoryCommand, path: str, named: str
) -> None:
    for arguments in COMMANDS:
        given = [path if text == "PATH" else text for text in arguments]
        if arguments[0] == "cp" and ":" not in path:
            continue  # Without a colon a source is a local file.
        if "--json" in given:
            ended = command.run(*given)
            assert (ended.code, ended.out, ended.err.count("\n")) == (NOT_FOUND, "", 1), arguments
            continue
        assert named in command.fail(NOT_FOUND, *given), arguments
    assert not Path("out").exists()


LOCAL = [
    ["put", "none"],
    ["put", "none", "work:x"],
    ["put", "dir/none", "work:x"],
    ["cp", "none", "work:x"],
    ["cp", "-r", "none", "work:x"],
    ["backup", "none", "work:x"],
    ["get", "--cap-file", "none"],
    ["get", "work:dir/file", "none/out"],
    ["cp", "work:dir/file", "none/out"],
]


def test_local_path_when_nothing_is_there_ends_with_the_same_status(command: MemoryCommand) -> None:
    for arguments in LOCAL:
        assert "none" in command.fail(NOT_FOUND, *arguments), arguments
    assert command.names() == ["dir"]


def test_file_without_shares_ends_with_the_same_status(command: MemoryCommand) -> None:
    cap = f"URI:CHK:{'a' * 26}:{'a' * 52}:3:10:100"
    said = command.fail(NOT_FOUND, "get", cap)
    assert said == (
        "file not found: none of 10 servers has a share of it (3 are needed); `grid status` lists servers that are"
        " offline"
    )


def test_path_when_its_colon_was_forgotten_is_suggested(command: MemoryCommand) -> None:
    assert command.fail(NOT_FOUND, "ls", "work") == "There is no path 'work'. Did you mean 'work:'?"
    assert command.fail(NOT_FOUND, "get", "work/dir/file") == (
        "There is no path 'work/dir/file'. Did you mean 'work:dir/file'?"
    )
    command.succeed("create-alias", "tahoe")
    assert command.fail(NOT_FOUND, "ls", "work") == "There is no path 'tahoe:work'. Did you mean 'work:'?"
    command.succeed("mkdir", "tahoe:work")
    assert command.names("work") == []


def test_path_of_the_default_alias_when_there_is_none_says_what_a_path_begins_with(command: MemoryCommand) -> None:
    said = command.fail(NOT_FOUND, "ls", "docs")
    assert said.startswith("There is no path 'docs': a path begins with an alias") and "create-alias tahoe" in said


FAILURES: list[tuple[list[str], str, str | None, int]] = [
    (["ls", "--json", "work:none"], "not-found", "work:none", 4),
    (["ls", "--json", "nobody:x"], "not-found", "nobody:", 4),
    (["put", "--json", "none"], "not-found", "none", 4),
    (["get", "--json", "work:dir/none", "out"], "not-found", "work:dir/none", 4),
    (["get", "--json", "--nonsense"], "usage", None, 2),
    (["get", "--json", "URI:CHK:short"], "capability", None, 2),
    (["put", "--json", "--mutable", "--format", "chk", "file"], "usage", None, 2),
    (["cp", "--json", "none", "work:x"], "not-found", "none", 4),
    (["backup", "--json", "none", "work:x"], "not-found", "none", 4),
    (["restore", "--json", "work:none", "out"], "not-found", "work:none", 4),
    (["restore", "--json", "work:dir/file", "out"], "wrong-type", "work:dir/file", 1),
    (["cp", "--json", "work:dir", "out"], "wrong-type", "work:dir", 1),
    (["mkdir", "--json", "work:dir/file"], "wrong-type", "work:dir/file", 1),
    (["check", "--json", "work:none"], "not-found", "work:none", 4),
    (["check", "--raw", "work:none"], "not-found", "work:none", 4),
    (["deep-check", "--raw", "work:none"], "not-found", "work:none", 4),
    (["deep-check", "-vr", "work:none"], "not-found", "work:none", 4),
    (["repair", "--json", "work:none"], "not-found", "work:none", 4),
    (["manifest", "-r", "work:none"], "not-found", "work:none", 4),
    (["stats", "--json", "work:dir/file"], "wrong-type", "work:dir/file", 1),
    (["find", "--json", "work:dir/file"], "wrong-type", "work:dir/file", 1),
    (["du", "--json", "work:none"], "not-found", "work:none", 4),
    (["snapshots", "--json", "work:dir"], "not-found", "work:dir", 4),
    (["forget", "--json", "work:dir"], "usage", None, 2),
    (["diff", "--json", "work:dir/file", "work:dir"], "wrong-type", "work:dir/file", 1),
    (["list-aliases", "--json", "more"], "usage", None, 2),
]


def test_failure_when_json_was_asked_for_is_an_object_on_stderr(command: MemoryCommand) -> None:
    for arguments, kind, path, code in FAILURES:
        ended = command.run(*arguments)
        assert (ended.code, ended.out) == (code, ""), arguments
        (error,) = json.loads(ended.err).values()
        shown = error.pop("path")
        assert shown == path or (path == "none" and shown.endswith("/none")), arguments
        assert error.pop("message") and error == {"kind": kind, "exit_code": code}, arguments
        assert "URI:" not in ended.err


def test_failure_when_json_was_not_asked_for_is_a_line(command: MemoryCommand) -> None:
    assert command.fail(NOT_FOUND, "ls", "--", "work:--json").startswith("work:--json: No such file")


def test_bare_capability_of_a_file_when_listed_shows_what_is_known_of_it(command: MemoryCommand) -> None:
    cap = command.succeed("put", "file")
    assert command.succeed("ls", cap) == "-r-- 100 -"
    assert command.succeed("ls", "-l", cap) == "-r-- 100 -"
    assert command.run("ls", "--uri", cap).out == f" {cap}\n"
    mutable = command.succeed("put", "-m", "file")
    assert command.succeed("ls", mutable).startswith("-rw- ") and command.run("ls", "-F", mutable).out == "*\n"
