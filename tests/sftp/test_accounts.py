"""The accounts file: everything that 1.20 accepts is accepted, and refused lines are named, never quoted."""

from __future__ import annotations

import base64

import pytest

from grid.errors import ConfigError
from grid.sftp.accounts import parse_accounts

KEY = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + bytes(32)).decode()
ROOT = "URI:DIR2:aaaaaaaaaaaaaaaaaaaaaaaaaa:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
VERIFY = "URI:DIR2-Verifier:aaaaaaaaaaaaaaaaaaaaaaaaaa:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"


@pytest.mark.parametrize("comment", ["", "alice@host ", "two words "])
def test_account_when_its_line_has_a_comment_is_the_same(comment: str) -> None:
    text = f"# people\n\n  alice   ssh-ed25519 {KEY} {comment}{ROOT}\n"
    ((name, key),) = parse_accounts(text, "accounts", pytest.fail)
    assert (name, key) == ("alice", base64.b64decode(KEY))


def test_account_when_it_has_two_keys_has_two_entries() -> None:
    other = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + bytes(31) + b"1").decode()
    text = f"alice ssh-ed25519 {KEY} {ROOT}\nalice ssh-ed25519 {other} {ROOT}\n"
    assert len(parse_accounts(text, "accounts", pytest.fail)) == 2


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f"alice secret {ROOT}", "passwords"),
        (f"alice secret word {ROOT}", "passwords"),
        (f"alice ssh-dss {KEY} {ROOT}", "KEY-TYPE"),
        (f"alice ssh-rsa {KEY} {ROOT}", "not a public key"),
        (f"alice ssh-ed25519 !!! {ROOT}", "not a public key"),
        (f"alice ssh-ed25519 {KEY} URI:LIT:aa", "directory"),
        (f"alice ssh-ed25519 {KEY} {VERIFY}", "directory"),
        (f"alice ssh-ed25519 {KEY} {ROOT}\nalice ssh-ed25519 {KEY} {ROOT}", "earlier line"),
    ],
)
def test_line_when_it_is_not_an_account_is_skipped_and_named_and_not_quoted(line: str, why: str) -> None:
    skipped: list[str] = []
    found = parse_accounts(f"# comment\n{line}\nbob ssh-ed25519 {KEY} {ROOT}\n", "accounts", skipped.append)
    assert ("bob", base64.b64decode(KEY)) in found and len(found) == line.count("\n") + 1
    (said,) = skipped
    assert said.startswith(f"accounts, line {line.count(chr(10)) + 2}: ") and why in said
    assert all(secret not in said for secret in ("URI:", "secret", KEY, "alice"))


def test_account_whose_key_cannot_be_used_is_skipped() -> None:
    def refuse(key: bytes) -> None:
        raise ConfigError("too short")

    skipped: list[str] = []
    assert not parse_accounts(f"alice ssh-ed25519 {KEY} {ROOT}\n", "accounts", skipped.append, refuse)
    assert skipped == ["accounts, line 1: too short"]
