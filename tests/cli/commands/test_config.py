"""`grid config`: showing and changing single settings."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.support.memory_command import MemoryCommand


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


def test_setting_is_changed_in_the_file_that_all_programs_read(command: MemoryCommand) -> None:
    file = command.path / "tahoe.cfg"
    before = file.read_text()
    mode = stat.S_IMODE(file.stat().st_mode)
    assert command.succeed("config", "set", "client.shares.happy", "5") == "client.shares.happy = 5"
    assert command.succeed("config", "get", "client.shares.happy") == "5"
    assert file.read_text() == before.replace("shares.happy = 7", "shares.happy = 5")
    assert (command.path / "grid.cfg").is_symlink() and stat.S_IMODE(file.stat().st_mode) == mode
    assert "client.shares.happy = 5" in command.succeed("config", "list").splitlines()
    assert "# client.pack is not set" in command.succeed("config", "list", "--all").splitlines()
    assert command.succeed("config", "unset", "client.shares.happy") == "client.shares.happy is no longer set"
    assert "its default applies" in command.fail(4, "config", "get", "client.shares.happy")
    assert "is not set" in command.fail(4, "config", "unset", "client.shares.happy")


def test_setting_that_the_node_could_not_use_changes_nothing(command: MemoryCommand) -> None:
    before = (command.path / "tahoe.cfg").read_text()
    assert "shares.happy: 50 is more" in command.fail(1, "config", "set", "client.shares.happy", "50")
    assert "did you mean client.shares.happy?" in command.fail(1, "config", "set", "client.shares.hapy", "5")
    assert (command.path / "tahoe.cfg").read_text() == before


def test_section_may_be_left_out_of_a_key_that_only_one_has(command: MemoryCommand) -> None:
    assert command.succeed("config", "set", "web.allowed_hosts", "a.example") == "node.web.allowed_hosts = a.example"
    assert command.succeed("config", "get", "Web.allowed_hosts") == "a.example"
    assert command.succeed("config", "set", "nickname", "me") == "node.nickname = me"
    assert command.succeed("config", "unset", "web.allowed_hosts") == "node.web.allowed_hosts is no longer set"
    before = (command.path / "tahoe.cfg").read_text()
    assert "client.plaintext_reads or storage.plaintext_reads" in command.fail(
        1, "config", "set", "plaintext_reads", "yes"
    )
    assert "did you mean node.web.port?" in command.fail(1, "config", "set", "web.prt", "1")
    assert (command.path / "tahoe.cfg").read_text() == before


def test_settings_in_json(command: MemoryCommand) -> None:
    done = json.loads(command.succeed("config", "set", "--json", "node.nickname", "me"))
    assert done == {
        "event": "config-set", "key": "node.nickname", "value": "me", "old": "", "restart_needed": False,
    }  # fmt: skip
    assert json.loads(command.succeed("--json", "config", "get", "node.nickname"))["value"] == "me"
    found = json.loads(command.succeed("config", "list", "--json"))
    assert found["values"]["node.nickname"] == "me" and found["file"] == str(command.path / "tahoe.cfg")


def test_file_with_a_mistake_is_fixed_by_removing_the_key(command: MemoryCommand) -> None:
    file = command.path / "tahoe.cfg"
    file.write_text(file.read_text().replace("[node]", "[node]\nnicknam = x"))
    assert "there is no such key" in command.fail(1, "ls", "work:")
    command.succeed("config", "unset", "node.nicknam")
    command.succeed("ls", "work:")


def test_furl_is_shortened_in_the_list_and_whole_when_asked_for(command: MemoryCommand) -> None:
    furl = "pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:127.0.0.1:9/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht"
    command.succeed("config", "set", "client.introducer.furl", furl)
    assert furl not in command.succeed("config", "list") + command.succeed("config", "list", "--json")
    assert command.succeed("config", "get", "client.introducer.furl") == furl


def test_two_files_that_are_not_one_are_not_changed(command: MemoryCommand) -> None:
    (command.path / "grid.cfg").unlink()
    (command.path / "grid.cfg").write_text((command.path / "tahoe.cfg").read_text())
    assert "ln -sf tahoe.cfg grid.cfg" in command.fail(1, "config", "set", "node.nickname", "me")
