"""Every command that may take long: it shows progress unless that is hidden, and prints none without a terminal."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from grid.cli.main import cli
from grid.cli.terminal.invocation import COMMANDS
from tests.support.memory_command import MemoryCommand

BAR = "\u2501"

LONG = {
    "put": ["put", "file", "work:put"],
    "get": ["get", "work:tree/a", "got"],
    "cp": ["cp", "-r", "tree", "work:cp"],
    "backup": ["backup", "tree", "work:b"],
    "restore": ["restore", "work:tree", "back"],
    "check": ["check", "--verify", "work:tree/a"],
    "repair": ["repair", "work:tree/a"],
    "deep-check": ["deep-check", "--verify", "work:"],
    "stats": ["stats", "work:"],
    "manifest": ["manifest", "work:"],
    "find": ["find", "work:"],
    "du": ["du", "work:"],
    "block": ["block", "work:tree"],
}

TELLING = {"put": "20", "get": "work:tree/a retrieved", "block": "To show it again"}
"""What they say on stderr when they are done: the first two as in 1.20."""

ELSEWHERE = {"sync", "transfer", "watch", "snapshots"}
"""The first three need a client of their own, and are tried with real servers: tests/cli/commands/test_sync.py, tests/transfer.
The last one only warns: tests/cli/commands/test_snapshots.py.
"""

SHORT_OR_TELLING = {
    "cat": "writes what it reads",
    "ls": "lists one directory; with -R it prints as it goes",
    "diff": "prints as it goes",
    "pack": "says what it did at the end", "unpack": "the same", "repack": "the same",
    "up": "has a spinner of its own", "run": "runs until it is stopped", "gateway": "the same",
}  # fmt: skip


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    Path("tree/sub").mkdir(parents=True)
    for name in ("tree/a", "tree/sub/b", "file"):
        Path(name).write_bytes(os.urandom(5000))
    made = MemoryCommand(tmp_path / "client", monkeypatch, capsys)
    made.succeed("cp", "-r", "tree", "work:")
    return made


def options_of(name: str) -> set[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return {option for parameter in command.params for option in parameter.opts}


def test_commands_that_show_progress_are_all_tried_here() -> None:
    showing = {name for name in COMMANDS if "--no-progress" in options_of(name)}
    assert showing == set(LONG) | ELSEWHERE
    assert all("--quiet" in options_of(name) for name in showing)
    assert set(SHORT_OR_TELLING) <= set(COMMANDS) - showing


@pytest.mark.parametrize("name", LONG)
def test_command_without_a_terminal_draws_nothing_and_says_nothing_when_it_is_to_be_quiet(
    command: MemoryCommand, name: str
) -> None:
    for options in ([], ["--quiet"], ["--no-progress"]):
        ended = command.run(*LONG[name], *options)
        said = TELLING.get(name, "") if options != ["--quiet"] else ""
        assert ended.code == 0 and ended.err.startswith(said) and ended.err.count("\n") == (said != ""), options


@pytest.mark.parametrize("name", ["check", "deep-check", "stats", "cp"])
def test_command_on_a_terminal_leaves_one_bar_and_none_when_it_is_hidden(
    command: MemoryCommand, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wait in ("_SHOW_AFTER_S", "_BAR_EVERY_S"):
        monkeypatch.setattr(f"grid.cli.terminal.progress.{wait}", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    command.on_terminal = True
    shown = command.run(*LONG[name])
    assert shown.code == 0 and BAR in shown.err
    assert shown.err.count("\n") == 1, "each picture takes the place of the one before"
    for option in ("--no-progress", "--quiet"):
        assert BAR not in command.run(*LONG[name], option).err
