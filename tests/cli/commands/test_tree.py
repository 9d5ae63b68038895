"""`grid tree`: every entry below a directory once, on an in-memory grid."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.support.memory_command import MemoryCommand


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    command = MemoryCommand(tmp_path / "client", monkeypatch, capsys)
    Path("file").write_text("a" * 100)
    for path in ("z.txt", "docs/b.txt", "docs/deep/c.jpg", "music/d.ogg"):
        command.succeed("put", "file", f"work:{path}")
    return command


def test_tree_is_drawn_with_files_before_directories(command: MemoryCommand) -> None:
    assert command.succeed("tree", "work:").splitlines() == [
        "work:",
        "├── z.txt",
        "├── docs/",
        "│   ├── b.txt",
        "│   └── deep/",
        "│       └── c.jpg",
        "└── music/",
        "    └── d.ogg",
        "",
        "3 directories, 4 files",
    ]


def test_tree_of_directories_alone_and_to_a_depth(command: MemoryCommand) -> None:
    assert command.succeed("tree", "--directories", "--depth", "1", "work:").splitlines() == [
        "work:", "├── docs/", "└── music/", "", "2 directories",
    ]  # fmt: skip
    command.grid.events.clear()
    deep = command.succeed("tree", "--depth", "2", "work:").splitlines()
    assert deep[-1] == "3 directories, 3 files" and "c.jpg" not in "".join(deep)


def test_directory_that_contains_itself_is_drawn_once(command: MemoryCommand) -> None:
    command.succeed("ln", "work:docs", "work:docs/deep/again")
    command.succeed("ln", "work:", "work:top")
    lines = command.succeed("tree", "work:").splitlines()
    assert "│       └── again/  (shown above)" in lines
    assert "├── top/  (shown above)" in lines
    assert lines[-1] == "5 directories, 4 files"


def test_tree_in_json_has_a_line_for_each_entry_and_the_totals(command: MemoryCommand) -> None:
    *entries, total = [json.loads(line) for line in command.succeed("tree", "--json", "work:docs").splitlines()]
    assert entries == [
        {"event": "entry", "path": "b.txt", "type": "file", "bytes": 100},
        {"event": "entry", "path": "deep", "type": "directory", "bytes": None},
        {"event": "entry", "path": "deep/c.jpg", "type": "file", "bytes": 100},
    ]
    assert total == {"event": "tree", "directories": 1, "files": 2}


def test_name_that_moves_the_cursor_is_drawn_with_escapes(command: MemoryCommand) -> None:
    command.succeed("mkdir", "work:music/x\x1b[2Jy")
    assert '    └── "x\\x1b[2Jy"/' in command.succeed("tree", "work:").splitlines()


def test_tree_when_the_output_has_no_lines_to_draw_with_is_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    from grid.cli.commands.tree import _pieces

    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert _pieces()[0] == "|-- "
