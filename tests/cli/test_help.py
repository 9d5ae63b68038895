"""Every command's help: its group, a one-line summary, and examples that parse as commands."""

from __future__ import annotations

import shlex

import click
import pytest

from grid.cli.main import cli
from grid.cli.terminal.invocation import COMMANDS, SECTIONS, LazyGroup

CONTEXT = click.Context(cli, info_name="grid")


def commands() -> list[tuple[str, click.Command]]:
    found = []
    for name in COMMANDS:
        command = cli.get_command(CONTEXT, name)
        assert command is not None
        found += inside(name, command)
    return found


def inside(name: str, command: click.Command) -> list[tuple[str, click.Command]]:
    """The command, or those in a group of commands."""
    if not isinstance(command, click.Group):
        return [(name, command)]
    return [found for below, each in command.commands.items() for found in inside(f"{name} {below}", each)]


def test_help_lists_the_commands_in_five_groups() -> None:
    assert list(SECTIONS) == ["Files", "Directories", "Sharing", "Backup and maintenance", "Nodes"]
    assert isinstance(cli, LazyGroup)


@pytest.mark.parametrize(("name", "command"), commands(), ids=[name for name, _ in commands()])
def test_examples_are_command_lines_that_are_understood(name: str, command: click.Command) -> None:
    _, title, *lines = (command.epilog or "").splitlines()
    assert title == "Examples:" and len(lines) == 3
    for line in lines:
        words = shlex.split(line.replace("$(", "").replace(")", ""), comments=True)
        words = words[: words.index("|")] if "|" in words and "grid" in words[: words.index("|")] else words
        if name.split(maxsplit=1)[0] not in words:
            continue  # What to do next, by another command.
        given = words[words.index(name.rsplit(maxsplit=1)[-1]) + 1 :]
        given = given[: given.index("<")] if "<" in given else given
        if name == "completion":
            given = [words[0].split()[-1]] if words[0] != "grid" and words[0] != "eval" else words[-1:]
            given = [given[0].split()[-1]]
        command.make_context(name, given)


@pytest.mark.parametrize(("name", "command"), commands(), ids=[name for name, _ in commands()])
def test_every_option_is_explained(name: str, command: click.Command) -> None:
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help and option.help.endswith((".", ")")), option.name
