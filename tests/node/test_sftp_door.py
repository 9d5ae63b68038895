"""The SFTP door of a node: 1.20's configuration, the host key, and accounts that change while it runs."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from twisted.logger import globalLogPublisher

from grid.errors import ConfigError
from grid.node.config import SftpSettings, parse_config
from grid.node.log import NodeLog
from grid.node.sftp_door import MOST_SKIPPED, AccountFile, read_accounts, read_host_key
from perf.processes.open_doors import make_key

ROOT = "URI:DIR2:aaaaaaaaaaaaaaaaaaaaaaaaaa:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
FILES = "host_pubkey_file = a.pub\nhost_privkey_file = a\naccounts.file = accounts\n"


def test_config_when_the_door_is_enabled_has_the_port_of_1_20() -> None:
    settings = parse_config(f"[sftpd]\nenabled = true\n{FILES}", "tahoe.cfg").sftp
    assert settings == SftpSettings(port="tcp:8022", public_key="a.pub", private_key="a", accounts="accounts")
    assert parse_config(f"[sftpd]\nenabled = false\n{FILES}", "tahoe.cfg").sftp.port is None


@pytest.mark.parametrize("key", ["host_pubkey_file", "host_privkey_file", "accounts.file"])
def test_config_when_a_file_is_missing_names_its_key(key: str) -> None:
    left = "".join(f"{line}\n" for line in FILES.splitlines() if not line.startswith(key))
    with pytest.raises(ConfigError, match=key):
        parse_config(f"[sftpd]\nenabled = true\n{left}", "tahoe.cfg")


def test_host_key_when_its_halves_belong_together_is_read(tmp_path: Path) -> None:
    make_key(tmp_path / "a")
    make_key(tmp_path / "b")
    assert read_host_key(tmp_path / "a.pub", tmp_path / "a").sshType() == b"ssh-ed25519"
    with pytest.raises(ConfigError, match="two halves"):
        read_host_key(tmp_path / "b.pub", tmp_path / "a")
    with pytest.raises(ConfigError, match="two halves"):
        read_host_key(tmp_path / "a.pub", tmp_path / "a.pub")


def test_host_key_when_it_is_missing_or_none_says_how_to_make_one(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("not a key\n")
    with pytest.raises(ConfigError, match="ssh-keygen"):
        read_host_key(tmp_path / "a.pub", tmp_path / "a")
    with pytest.raises(ConfigError, match="not a key"):
        read_host_key(tmp_path / "none", tmp_path / "none")


def test_accounts_when_the_file_changes_are_those_that_it_has_now(tmp_path: Path) -> None:
    first, second = make_key(tmp_path / "a"), make_key(tmp_path / "b")
    file = tmp_path / "accounts"
    file.write_text(f"alice {first} {ROOT}\n")
    accounts = AccountFile(file)
    (key,) = [account.key for account in read_accounts(file).values()]
    assert accounts.find("alice", key) is not None and accounts.find("bob", key) is None
    file.write_text(f"alice {second} {ROOT} \n")
    assert accounts.find("alice", key) is None
    (other,) = [account.key for account in read_accounts(file).values()]
    assert accounts.find("alice", other) is not None
    file.write_text(f"no account\nalice {second} {ROOT}\n")
    assert accounts.find("alice", other) is not None
    file.write_text("no account\n")
    assert accounts.find("alice", other) is None


def _rewritten(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


def test_accounts_whose_key_is_short_or_damaged_are_skipped_and_their_lines_logged(tmp_path: Path) -> None:
    short = generate_private_key(65537, 1024).public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    good = make_key(tmp_path / "key")
    lines = [f"alice {short}", "bob ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA", f"carol {good}", *["password"] * 40]
    logged = io.StringIO()
    observer = NodeLog(stream=logged)
    globalLogPublisher.addObserver(observer)
    try:
        found = read_accounts(_rewritten(tmp_path / "accounts", "".join(f"{line} {ROOT}\n" for line in lines)))
    finally:
        globalLogPublisher.removeObserver(observer)
    assert [name for name, _ in found] == ["carol"]
    said = logged.getvalue()
    assert "line 1: the RSA key has fewer than 2048 bits" in said and "line 2: the public key is damaged" in said
    assert said.count("is skipped") == MOST_SKIPPED and f"{42 - MOST_SKIPPED} more lines are skipped" in said
    assert all(secret not in said for secret in ("URI", "alice", "bob", "password "))


def test_accounts_when_others_can_read_them_are_called_exposed(tmp_path: Path) -> None:
    file = _rewritten(tmp_path / "accounts", f"alice {make_key(tmp_path / 'a')} {ROOT}\n")
    tmp_path.chmod(0o755)
    file.chmod(0o644)
    assert AccountFile(file).is_exposed
    file.chmod(0o600)
    assert not AccountFile(file).is_exposed
