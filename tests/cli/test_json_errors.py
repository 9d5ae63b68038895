"""The error object that a failed command writes for programs: one contract for all commands, in docs/exit-codes.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.memory_command import MemoryCommand


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    command = MemoryCommand(tmp_path / "client", monkeypatch, capsys)
    Path("file").write_bytes(b"x" * 100)
    command.succeed("put", "file", "work:dir/file")
    return command


def error_of(command: MemoryCommand, *arguments: str) -> dict[str, Any]:
    ended = command.run(*arguments)
    error: dict[str, Any] = json.loads(ended.err.splitlines()[-1])["error"]
    assert error["exit_code"] == ended.code
    return error


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (["get", "--json", "work:dir"], "work:dir"),
        (["get", "--json", "work:dir", "out"], "work:dir"),
        (["get", "--json", "work:dir/file/below"], "work:dir/file/below"),
        (["mkdir", "--json", "work:dir/file/below"], "work:dir/file/below"),
        (["manifest", "--json", "work:dir/file"], "work:dir/file"),
        (["stats", "--json", "work:dir/file"], "work:dir/file"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_file_where_a_directory_is_needed_or_the_other_way_round_is_a_wrong_type(
    command: MemoryCommand, arguments: list[str], path: str
) -> None:
    error = error_of(command, *arguments)
    assert (error["kind"], error["exit_code"]) == ("wrong-type", 1), error
    assert path.startswith(error["path"])


def test_directory_when_named_by_its_capability_is_a_wrong_type_that_shows_no_capability(
    command: MemoryCommand,
) -> None:
    cap = command.root.to_string()
    error = error_of(command, "get", "--json", cap)
    assert (error["kind"], error["exit_code"], error["path"]) == ("wrong-type", 1, "URI:...")
    assert cap not in json.dumps(error)


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (["get", "--json", "work:dir/file"], "work:dir/file"),
        (["check", "--json", "work:dir/file"], "work:dir/file"),
        (["ls", "--json", "work:dir"], "work:dir"),
        (["put", "--json", "file", "work:new"], "work:new"),
        (["mkdir", "--json", "work:new"], "work:new"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_failure_of_the_grid_names_the_path_that_the_command_is_about(
    command: MemoryCommand, arguments: list[str], path: str
) -> None:
    Path("file").write_bytes(b"y" * 1000)
    command.grid.servers.clear()
    assert error_of(command, *arguments)["path"] == path


def test_json_option_before_the_command_applies_to_the_command(command: MemoryCommand) -> None:
    after, before = command.run("ls", "--json", "work:dir"), command.run("--json", "ls", "work:dir")
    assert after.code == before.code == 0
    assert json.loads(before.out)[0] == json.loads(after.out)[0] == "dirnode"
    assert error_of(command, "--json", "get", "work:none")["kind"] == "not-found"


def test_json_option_before_a_command_of_several_words_applies_to_the_command(command: MemoryCommand) -> None:
    error = error_of(command, "--json", "create", "client", "d")
    message = "which grid? Give --join CODE, from `grid invite` on another node, or --introducer FURL"
    assert (error["kind"], error["message"]) == ("usage", message)
