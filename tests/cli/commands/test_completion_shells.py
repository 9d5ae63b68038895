"""Completion in real zsh and fish: each shell runs the code that `grid completion` prints for it."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.memory_command import MemoryCommand
from tests.support.warm_programs import warm_program

# The tests stage installs both shells; a developer's machine may have neither.
needs_zsh = pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
needs_fish = pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")

ZSHRC = """\
autoload -Uz compinit
compinit -D -u
source <(grid completion zsh)
show() { print -r -- "<$BUFFER>"; exit }
zle -N show
bindkey '^X' show
bindkey '^I' complete-word
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Mapping[str, str]:
    """The environment of a shell in a folder with two files, with `grid` on its path and a client directory."""
    command = MemoryCommand(tmp_path / "client", monkeypatch, capsys)
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "nodes").mkdir()
    (folder / "wood.txt").touch()
    (folder / "two words.txt").touch()
    grid = tmp_path / "grid"
    grid.write_text(f'#!/bin/sh\nexec {warm_program("grid.cli")} "$@"\n')
    grid.chmod(0o755)
    (tmp_path / ".zshrc").write_text(ZSHRC)
    monkeypatch.chdir(folder)
    paths = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path), "ZDOTDIR": str(tmp_path)}
    return {**os.environ, **paths, "GRID_NODE_DIR": str(command.path), "TERM": "xterm"}


@needs_zsh
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("grid deep", "grid deep-check "),
        ("grid put --no-p", "grid put --no-progress "),
        ("grid ls wo", "grid ls work:"),
        ("grid get two", r"grid get two\ words.txt"),
        ("grid -d no", "grid -d nodes/"),
        ("grid --node-directory=no", "grid --node-directory=nodes/"),
        ("grid put --happy 7", "grid put --happy 7"),
        ("grid put --format=s", "grid put --format=sdmf "),
    ],
)
def test_zsh_completes_the_line(line: str, completed: str, here: Mapping[str, str]) -> None:
    shown = typed_in_zsh(line, here)
    assert shown.rstrip(" ") == completed.rstrip(" ") and (not completed.endswith((" ", ":")) or shown == completed)


def typed_in_zsh(line: str, environment: Mapping[str, str]) -> str:
    """The line as zsh has it after a tab, on a terminal of its own."""
    ours, theirs = pty.openpty()
    try:
        zsh = subprocess.Popen(
            ["zsh", "-d", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
        )
    finally:
        os.close(theirs)
    try:
        os.write(ours, f"{line}\t\x18".encode())
        output = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # The other end is closed: the shell has ended.
                break
            if not piece:
                break
            output += piece
    finally:
        os.close(ours)
        zsh.kill()
        zsh.wait()
    text = output.decode(errors="replace")
    return text.rpartition("<")[2].partition(">")[0]


@needs_fish
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("grid deep", ["deep-check"]),
        ("grid put --no-p", ["--no-progress"]),
        ("grid ls wo", ["work:"]),
        ("grid get wo", ["wood.txt", "work:"]),
        ("grid -d no", ["nodes/"]),
        ("grid get --cap-file=wo", ["--cap-file=wood.txt"]),
        ("grid put --format=s", ["--format=sdmf"]),
    ],
)
def test_fish_is_offered_what_completes_the_line(line: str, offered: list[str], here: Mapping[str, str]) -> None:
    found = offered_in_fish(line, here)
    assert sorted(one.partition("\t")[0] for one in found) == offered


@needs_fish
def test_fish_shows_a_description_with_its_commas(here: Mapping[str, str]) -> None:
    assert offered_in_fish("grid put --format", here) == [
        "--format\tCHK (immutable, the default), SDMF (small, mutable) or MDMF (large, mutable)."
    ]


def offered_in_fish(line: str, environment: Mapping[str, str]) -> list[str]:
    """What fish offers for the end of the line: a line each, a description behind a tab."""
    script = "grid completion fish | source; complete -C $argv[1]"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script, line], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()
