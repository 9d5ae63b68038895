"""--quiet and --no-progress."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.memory_command import MemoryCommand


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    (tmp_path / "f").write_bytes(bytes(100_000))
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


def test_quiet_put_prints_only_the_capability(command: MemoryCommand, tmp_path: Path) -> None:
    ended = command.run("put", "--quiet", tmp_path / "f", "work:f")
    assert (ended.code, ended.err) == (0, "") and ended.out.startswith("URI:")


def test_quiet_get_and_cp_print_nothing(command: MemoryCommand, tmp_path: Path) -> None:
    command.succeed("put", tmp_path / "f", "work:f")
    for arguments in (("get", "-q", "work:f", tmp_path / "g"), ("cp", "-q", "work:f", tmp_path / "h")):
        ended = command.run(*arguments)
        assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert (tmp_path / "g").read_bytes() == (tmp_path / "h").read_bytes() == bytes(100_000)


def test_without_progress_json_has_only_the_result(command: MemoryCommand, tmp_path: Path) -> None:
    shown = command.run("put", "--json", tmp_path / "f")
    assert '"event": "progress"' in shown.err
    hidden = command.run("put", "--json", "--no-progress", tmp_path / "f")
    assert hidden.err == "" and json.loads(hidden.out)["event"] == "put"


def test_quiet_still_reports_a_failure(command: MemoryCommand) -> None:
    ended = command.run("cp", "--quiet", "work:nosuch", "here")
    assert ended.code != 0 and "nosuch" in ended.err
