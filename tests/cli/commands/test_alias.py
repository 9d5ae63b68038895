"""`grid alias export` and `import`, with their encryption."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pyrage  # type: ignore[import-untyped]
import pytest

from grid.discovery.server_files import pack_cache
from grid.node.directory import open_directory
from grid.node.introducers import read_introducers
from tests.discovery.samples import announcement
from tests.support.age_files import age_text
from tests.support.memory_command import MemoryCommand


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    Path("secret").write_text("correct horse battery staple\nanything\n")
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


def test_export_encrypts_by_the_passphrase(command: MemoryCommand) -> None:
    command.succeed("alias", "export", "--passphrase-file", "secret", "file.age")
    text = Path("file.age").read_text()
    assert text.startswith("-----BEGIN AGE ENCRYPTED FILE-----\n") and "URI" not in text


def test_aliases_come_back_from_a_printed_sheet_on_another_machine(
    command: MemoryCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyrage.passphrase, "encrypt", age_text)
    file = command.path / "private" / "aliases"
    before = file.read_text()
    done = command.succeed("alias", "export", "--passphrase-file", "secret", "--sheet", "sheet.txt")
    assert done == "1 alias, 1 introducer and 0 servers written to sheet.txt"
    sheet = Path("sheet.txt").read_text()
    assert "URI:" not in sheet and stat.S_IMODE(Path("sheet.txt").stat().st_mode) == 0o600
    file.write_text("")
    Path("typed.txt").write_text("\n".join(f"   {line}" for line in sheet.splitlines()))
    for added, unchanged in ((["work"], 0), ([], 1)):
        done = command.succeed("alias", "import", "--passphrase-file", "secret", "--json", "typed.txt")
        assert json.loads(done) == {
            "event": "alias-import", "created": False, "added": added, "unchanged": unchanged, "conflicts": [],
            "servers": 0,
        }  # fmt: skip
    assert file.read_text() == before
    Path("wrong").write_text("another passphrase")
    wrong = command.fail(1, "alias", "import", "--passphrase-file", "wrong", "sheet.txt")
    assert wrong == "the passphrase is wrong, or the file is damaged"
    other = command.grid.make().cap.to_string()
    file.write_text(f"work: {other}\n")
    assert "lead elsewhere: work" in command.fail(1, "alias", "import", "--passphrase-file", "secret", "sheet.txt")
    assert file.read_text() == f"work: {other}\n"


def test_export_that_cannot_work_is_refused_before_the_passphrase_is_asked_for(command: MemoryCommand) -> None:
    Path("there").write_text("mine")
    assert "already exists" in command.fail(1, "alias", "export", "there")
    assert "needs a terminal" in command.fail(2, "alias", "export", "new")
    Path("short").write_text("short\n")
    assert "at least 12 characters" in command.fail(2, "alias", "export", "--passphrase-file", "short", "new")
    command.fail(4, "alias", "import", "none")
    (command.path / "private" / "aliases").write_text("")
    assert "there are no aliases" in command.fail(1, "alias", "export", "new")
    assert Path("there").read_text() == "mine" and not Path("new").exists()


def test_package_that_is_missing_is_named(command: MemoryCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyrage", None)
    said = command.fail(1, "alias", "export", "--passphrase-file", "secret", "new")
    assert (
        said
        == "encryption needs the package pyrage: install Grid again with its extra: pipx install --force '.[recovery]'"
    )


def test_import_when_there_is_no_client_creates_one_like_the_exported(
    command: MemoryCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyrage.passphrase, "encrypt", age_text)
    for key, value in (("needed", "2"), ("happy", "3"), ("total", "5")):
        command.succeed("config", "set", f"client.shares.{key}", value)
    cache = Path("private") / "introducer_default_cache.yaml"
    (command.path / cache).write_bytes(pack_cache([announcement(0), announcement(1)]))
    done = json.loads(
        command.succeed("alias", "export", "--json", "--passphrase-file", "secret", "--sheet", "sheet.txt")
    )
    assert (done["introducers"], done["servers"]) == (1, 2)
    old, command.path = command.path, command.path.parent / "new"
    done = command.succeed("alias", "import", "--passphrase-file", "secret", "sheet.txt")
    assert done.splitlines() == [
        (
            f"Client created in {command.path}: 1 introducer; 5 shares of each file, any 2 of which restore it, on at least"
            " 3 servers"
        ),
        "1 alias added, 0 already there",
        "2 servers noted, to use while the introducer cannot be reached",
    ]
    assert (command.path / "private" / "aliases").read_text() == (old / "private" / "aliases").read_text()
    made = open_directory(command.path)
    assert (made.settings.client.needed, made.settings.client.happy, made.settings.client.total) == (2, 3, 5)
    assert read_introducers(made) == read_introducers(open_directory(old))
    assert (command.path / cache).exists()
    again = json.loads(command.succeed("alias", "import", "--json", "--passphrase-file", "secret", "sheet.txt"))
    assert (again["created"], again["unchanged"], again["servers"]) == (False, 1, 0)


def test_import_that_fails_creates_no_client(command: MemoryCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyrage.passphrase, "encrypt", age_text)
    (command.path / "private" / "introducers.yaml").write_text("")
    command.succeed("alias", "export", "--passphrase-file", "secret", "sheet.txt")
    Path("wrong").write_text("another passphrase")
    command.path = command.path.parent / "new"
    assert "is wrong" in command.fail(1, "alias", "import", "--passphrase-file", "wrong", "sheet.txt")
    said = command.fail(1, "alias", "import", "--passphrase-file", "secret", "sheet.txt")
    assert "sheet.txt names no introducer" in said and "`grid create client`" in said
    assert not command.path.exists()
