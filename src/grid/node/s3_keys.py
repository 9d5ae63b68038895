"""The access keys and public buckets of a node's S3 door, in the private file `private/s3-keys.json`.

A running door reloads the file when it changes, so a removed key opens nothing from then on.
"""

from __future__ import annotations

import os
import secrets
import string
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from twisted.logger import Logger

from grid.errors import ConfigError
from grid.node.files import locked, make_private_directory, read_text, write_atomically
from grid.s3.accounts import MAX_KEYS, PUBLIC, Account, pack_accounts, parse_accounts

NAME = "s3-keys.json"

_log = Logger("grid.s3")


def read_keys(private: Path) -> dict[str, Account]:
    """The accounts by access key; ConfigError for a file that is invalid or readable by others."""
    file = private / NAME
    text = read_text(file)
    if text is None:
        return {}
    if file.stat().st_mode & 0o077:
        raise ConfigError(f"{file}: others can read it; run `chmod 600` on it, and make new keys")
    return parse_accounts(text, str(file))


@contextmanager
def changing_keys(private: Path) -> Iterator[dict[str, Account]]:
    """Lock and read the accounts, and write them back if the context ends without an error. ConfigError, OSError."""
    make_private_directory(private)
    with locked(private):
        accounts = read_keys(private)
        yield accounts
        if len(accounts) > MAX_KEYS:
            raise ConfigError(f"{private / NAME}: at most {MAX_KEYS} access keys")
        write_atomically(private / NAME, pack_accounts(accounts).encode())


def new_pair() -> tuple[str, str]:
    """A new access key and secret in S3's forms."""
    letters = string.ascii_uppercase + string.digits
    return f"GK{''.join(secrets.choice(letters) for _ in range(18))}", secrets.token_hex(32)


class KeyFile:
    """The keys of a running door."""

    def __init__(self, private: Path) -> None:
        """ConfigError if the file cannot be used now."""
        self._private = private
        self._file = str(private / NAME)
        self._mark: tuple[int, ...] | None = None
        self._accounts: dict[str, Account] = {}
        self._mark = self._look()
        self._accounts = read_keys(private)

    def find(self, access_key: str) -> Account | None:
        """The account of an access key; None while the file cannot be read."""
        return self.accounts().get(access_key)

    def public(self) -> Account | None:
        """The account that stands for everybody; None if no bucket is public, or while the file cannot be read."""
        return self.accounts().get(PUBLIC)

    def accounts(self) -> Mapping[str, Account]:
        """All accounts by access key; empty while the file cannot be read."""
        mark = self._look()
        if mark != self._mark:
            self._mark = mark
            try:
                self._accounts = read_keys(self._private)
            except (ConfigError, OSError) as problem:
                self._accounts = {}
                _log.warn("no access key is accepted: {problem}", problem=str(problem))
        return self._accounts

    def _look(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self._file)
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode
