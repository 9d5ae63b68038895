"""Aliases without their colon: no command uses a local file where the user meant the grid."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.memory_command import MemoryCommand


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    command = MemoryCommand(tmp_path / "client", monkeypatch, capsys)
    Path("photo.jpg").write_bytes(b"x" * 100)
    command.succeed("put", "photo.jpg", "work:dir/there")
    return command


TARGETS = [
    (["cp", "photo.jpg", "work"], "'work:'"),
    (["cp", "photo.jpg", "work/dir"], "'work:dir'"),
    (["cp", "-r", "work:dir", "work"], "'work:'"),
    (["get", "work:dir/there", "work"], "'work:'"),
    (["restore", "work:dir", "work/back"], "'work:back'"),
    (["transfer", "photo.jpg", "work"], "'work:'"),
    (["transfer", "work:dir", "work/back"], "'work:back'"),
    (["sync", "work:dir", "work"], "'work:'"),
    (["watch", "--once", ".", "work/new"], "'work:new'"),
]
SOURCES = [
    (["cp", "work/dir/there", "copy"], "'work:dir/there'"),
    (["put", "work/dir/there"], "'work:dir/there'"),
    (["backup", "work/dir", "work:home"], "'work:dir'"),
    (["transfer", "work/dir", "copy"], "'work:dir'"),
    (["sync", "work/dir", "copy"], "'work:dir'"),
]


@pytest.mark.parametrize(("arguments", "hint"), TARGETS, ids=lambda value: "-".join(value) if value else "")
def test_local_target_with_the_name_of_an_alias_is_refused_with_a_suggestion(
    command: MemoryCommand, arguments: list[str], hint: str
) -> None:
    before = sorted(path.name for path in Path().iterdir())
    said = command.fail(2, *arguments)
    assert hint in said and f"'./{arguments[-1]}'" in said
    assert sorted(path.name for path in Path().iterdir()) == before


@pytest.mark.parametrize(("arguments", "hint"), SOURCES, ids=lambda value: "-".join(value) if value else "")
def test_local_source_with_the_name_of_an_alias_is_not_found_with_a_suggestion(
    command: MemoryCommand, arguments: list[str], hint: str
) -> None:
    said = command.fail(4, *arguments)
    assert said.endswith(f"no such local file. Did you mean {hint}?")


def test_local_name_that_is_an_alias_is_used_if_it_exists_or_is_meant(command: MemoryCommand) -> None:
    command.succeed("cp", "photo.jpg", "./work")
    assert Path("work").read_bytes() == b"x" * 100
    command.succeed("cp", "photo.jpg", "work")
    command.succeed("get", "work:dir/there", "work")
    command.succeed("put", "work")


@pytest.mark.parametrize(
    "arguments",
    [
        ["mv", "work:dir/there", "work"],
        ["ln", "work:dir/there", "work"],
        ["put", "photo.jpg", "work"],
        ["mkdir", "work"],
        ["backup", "tree", "work"],
    ],
)
def test_path_of_the_default_alias_that_is_another_alias_is_refused_unless_it_is_there(
    command: MemoryCommand, arguments: list[str]
) -> None:
    command.succeed("create-alias", "tahoe")
    Path("tree").mkdir()
    assert "Did you mean 'work:'?" in command.fail(4, *arguments)
    assert command.names("tahoe:") == [] and command.names("work:dir") == ["there"]
    command.succeed(*arguments[:-1], "tahoe:work")
    assert command.names("tahoe:") == ["work"]
