"""`grid init`: a client and a first directory, with questions on a terminal and options elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from tests.cli.test_json_output import check
from tests.support.memory_command import MemoryCommand

FURL = "pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:127.0.0.1:9/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht"


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    """Runs in a client directory that is not there yet."""
    monkeypatch.chdir(tmp_path)
    command = MemoryCommand(tmp_path / "other", monkeypatch, capsys)
    command.path = tmp_path / "new"
    Path("furl").write_text(f"{FURL}\n")
    return command


def test_client_is_made_by_options_and_stores_files(command: MemoryCommand) -> None:
    said = command.succeed("init", "--introducer", "furl", "--servers", "5", "--alias", "work").splitlines()
    assert said[0] == f"Client created in {command.path}."
    assert said[1] == "Each file is stored as 5 shares, any 1 of which restore it; 3 servers must take shares."
    assert said[3] == f"Try:   grid -d {command.path} put FILE work:FILE"
    command.succeed("put", "furl", "work:FILE")
    assert command.names() == ["FILE"]
    assert FURL in (command.path / "private" / "introducers.yaml").read_text()
    assert "already exists" in command.fail(1, "init", "--introducer", "furl")


def test_client_is_made_by_questions(command: MemoryCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    answers = iter(["furl", 10, "mine"])

    def prompt(text: str, **options: object) -> object:
        asked.append(text)
        return next(answers)

    monkeypatch.setattr(click, "prompt", prompt)
    command.on_terminal = True
    ended = command.run("init")
    assert ended.code == 0 and "An introducer tells the client about the storage servers" in ended.err
    assert f"grid create client {command.path} --join CODE" in ended.err.replace("\n", " ")
    assert asked == [
        "FURL of the introducer, or a file that holds it", "Number of storage servers", "Name of the first directory",
    ]  # fmt: skip
    assert command.succeed("ls", "mine:") == ""


def test_client_is_made_even_if_no_server_answers(command: MemoryCommand) -> None:
    command.grid.servers.clear()
    ended = command.run("init", "--json", "--introducer", FURL)
    assert ended.code == 5
    check("init", ended.out)
    assert json.loads(ended.out)["alias"] is None
    check("error", ended.err.splitlines()[-1])
    assert (command.path / "tahoe.cfg").exists()


def test_client_without_a_directory_asks_no_server(command: MemoryCommand) -> None:
    command.grid.servers.clear()
    said = command.succeed("init", "--introducer", FURL, "--no-alias")
    assert said.endswith(f"create a directory: grid -d {command.path} create-alias home")


def test_command_that_makes_no_client_leaves_nothing(command: MemoryCommand) -> None:
    assert "give --introducer FURL" in command.fail(2, "init")
    assert "contradict each other" in command.fail(2, "init", "--alias", "a", "--no-alias")
    said = command.fail(1, "init", "--introducer", "none")
    assert "neither a FURL, a line that begins with `pb:`," in said, "a FURL's beginning is not taken for a FURL"
    assert "TUBID@HINTS/NAME" in command.fail(1, "init", "--introducer", "pb://short"), "nor is the pattern of one"
    assert "cannot contain colons" in command.fail(1, "init", "--introducer", "furl", "--alias", "a:b")
    assert not command.path.exists()
