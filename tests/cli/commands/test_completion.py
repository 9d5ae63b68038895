"""Completion: the candidates that a shell gets, also in a real bash."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from click.shell_completion import CompletionItem

from grid.cli.arguments.completion import complete_local_or_remote, complete_remote
from grid.cli.main import cli, main
from grid.cli.terminal.invocation import Invocation
from tests.support.memory_command import MemoryCommand
from tests.support.warm_programs import warm_program


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


def offered(command: MemoryCommand, incomplete: str) -> list[str]:
    return [str(item.value) for item in items(command, incomplete)]


def items(command: MemoryCommand, incomplete: str) -> list[CompletionItem]:
    context = click.Context(cli, obj=Invocation())
    context.params["node_directory"] = str(command.path)
    return complete_remote(context, click.Argument(["path"]), incomplete)


def test_aliases_are_offered_with_their_colon(command: MemoryCommand) -> None:
    assert offered(command, "wo") == ["work:"]
    assert offered(command, "x") == []


def test_paths_are_those_of_the_directory_as_far_as_it_is_named(command: MemoryCommand, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("contents")
    for path in ("work:docs/a.txt", "work:docs/b c.txt", "work:photo.jpg"):
        command.succeed("put", tmp_path / "f", path)
    assert offered(command, "work:") == ["work:docs/", "work:photo.jpg"]
    assert offered(command, "work:do") == ["work:docs/"]
    assert offered(command, "work:docs/") == ["work:docs/a.txt", "work:docs/b c.txt"]
    assert [item.type for item in items(command, "work:")] == ["prefix", "plain"]


def test_path_that_cannot_be_listed_offers_nothing_and_prints_nothing(
    command: MemoryCommand, capsys: pytest.CaptureFixture[str]
) -> None:
    assert offered(command, "nosuch:a") == offered(command, "work:nosuch/a") == offered(command, "URI:CHK:a") == []
    context = click.Context(cli, obj=Invocation())
    context.params["node_directory"] = str(command.path / "nosuch")
    assert complete_remote(context, click.Argument(["path"]), "w") == []
    assert capsys.readouterr() == ("", "")


def test_local_files_are_left_to_the_shell(command: MemoryCommand) -> None:
    context = click.Context(cli, obj=Invocation())
    context.params["node_directory"] = str(command.path)
    assert [item.type for item in complete_local_or_remote(context, click.Argument(["path"]), "w")] == [
        "prefix",
        "file",
    ]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_code_for_a_shell_names_the_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    code = capsys.readouterr().out
    assert "_GRID_COMPLETE" in code and "grid" in code and "%(" not in code


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("grid deep", ["deep-check"]),
        ("grid put --no-p", ["--no-progress"]),
        ("grid completion z", ["zsh"]),
        ("grid ls wo", ["work:"]),
        ("grid get wo", ["work:", "wood.txt"]),
        ("grid get two", [r"two\ words.txt"]),
        ("grid create st", ["storage"]),
        ("grid -d no", ["nodes/"]),
        ("grid put --happy 7", []),
        ("grid create client --introducer wo", ["wood.txt"]),
    ],
)
def test_bash_is_offered_what_completes_the_line(
    line: str, expected: list[str], command: MemoryCommand, tmp_path: Path
) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    here = tmp_path / "here"
    (here / "nodes").mkdir(parents=True)
    (here / "wood.txt").touch()
    (here / "two words.txt").touch()
    grid = tmp_path / "grid"
    grid.write_text(f'#!/bin/sh\nexec {warm_program("grid.cli")} "$@"\n')
    grid.chmod(0o755)
    script = (
        "source <(grid completion bash)\nCOMP_LINE=$1 COMP_POINT=${#1}\n_grid_completion grid 2>/dev/null\n"
        "(( ${#COMPREPLY[@]} )) && printf '%s\\n' \"${COMPREPLY[@]}\"\ncomplete -p grid\n"
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "--norc", "-c", script, "bash", line],
        env={**os.environ, "PATH": path, "GRID_NODE_DIR": str(command.path)},
        cwd=here, capture_output=True, text=True, check=False,
    )  # fmt: skip
    *found, registered = done.stdout.splitlines()
    assert found == expected, done.stderr
    assert "-F _grid_completion grid" in registered
