"""The file of access keys: private to its owner, and a running door follows its changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.errors import ConfigError
from grid.node.s3_keys import NAME, KeyFile, changing_keys, new_pair, read_keys
from grid.s3.accounts import Account


def add(private: Path) -> Account:
    access_key, secret = new_pair()
    account = Account(access_key=access_key, secret=secret)
    with changing_keys(private) as accounts:
        accounts[access_key] = account
    return account


def test_a_key_that_is_added_or_removed_counts_at_once(tmp_path: Path) -> None:
    file = KeyFile(tmp_path)
    account = add(tmp_path)
    assert file.find(account.access_key) == account
    other = add(tmp_path)
    assert file.find(other.access_key) == other
    with changing_keys(tmp_path) as accounts:
        del accounts[account.access_key]
    assert file.find(account.access_key) is None
    assert file.find(other.access_key) == other


def test_a_file_that_others_can_read_opens_nothing(tmp_path: Path) -> None:
    account = add(tmp_path)
    file = KeyFile(tmp_path)
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    (tmp_path / NAME).chmod(0o644)
    assert file.find(account.access_key) is None
    with pytest.raises(ConfigError, match="chmod 600"):
        read_keys(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": [{}]}', '{"keys": [1]}', '{"keys": 3}', "[" * 10000])
def test_invalid_file_is_refused_without_its_contents(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    (tmp_path / NAME).chmod(0o600)
    with pytest.raises(ConfigError, match="not a file of access keys"):
        read_keys(tmp_path)


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    account = add(tmp_path)
    assert account.secret not in repr(account)
