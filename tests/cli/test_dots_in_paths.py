"""Names `.` and `..` on the grid: nothing new gets one, and what has one stays readable, and can be moved away."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.caps import parse_cap, require_usable
from grid.directory.edits import SetChild
from tests.support.memory_command import MemoryCommand


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Path("file").write_bytes(b"x" * 100)
    Path("tree").mkdir()
    Path("tree/inside").write_bytes(b"y" * 100)
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


@pytest.mark.parametrize(
    "arguments",
    [
        ["put", "file", "work:a/../x"],
        ["put", "file", "work:./x"],
        ["put", "file", "work:.."],
        ["mkdir", "work:a/.."],
        ["mkdir", "work:./b"],
        ["cp", "file", "work:../x"],
        ["cp", "-r", "tree", "work:a/.."],
        ["mv", "work:here", "work:a/../x"],
        ["mv", "work:here", "work:.."],
        ["ln", "work:here", "work:../x"],
        ["ln", "work:here", "work:a/./x"],
        ["backup", "tree", "work:a/../b"],
        ["sync", "tree", "work:a/../b"],
        ["transfer", "tree", "work:a/.."],
    ],
    ids=" ".join,
)
def test_path_to_write_when_it_has_dots_is_refused(command: MemoryCommand, arguments: list[str]) -> None:
    command.succeed("put", "file", "work:here")
    command.succeed("mkdir", "work:a")
    said = command.fail(1, *arguments)
    assert "paths on the grid have no '.' or '..': write the path without '." in said
    assert command.names() == ["a", "here"] and command.names("work:a") == []


def test_entry_whose_name_is_dots_is_read_and_moved_and_removed(command: MemoryCommand) -> None:
    command.succeed("put", "file", "work:a/x")
    cap = require_usable(parse_cap(command.succeed("put", "file")))
    root, below = command.grid.store.directory(command.root), command.grid.make()
    command.grid.run(below.edit([SetChild(name="x", target=cap)]))
    command.grid.run(root.edit([SetChild(name=name, target=below.cap) for name in ("..", ".")]))
    assert command.names("work:..") == ["x"]
    command.succeed("get", "work:../x", "copy")
    command.succeed("cp", "work:./x", "again")
    assert Path("copy").read_bytes() == Path("again").read_bytes() == b"x" * 100
    command.succeed("mv", "work:..", "work:good")
    command.succeed("rm", "work:.")
    assert command.names() == ["a", "good"]
