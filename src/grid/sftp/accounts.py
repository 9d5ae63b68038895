"""Accounts in 1.20's `accounts.file`: names, public keys and root directories. Pure. [spec cli 6.3]

One account per line: `NAME KEY-TYPE KEY [COMMENT...] CAPABILITY`. A name may have several lines, each with its own key
and root. A line that is none of these is skipped, and locks out nobody else. The file contains capabilities, so nothing
quotes a line.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping

from grid.caps import DirectoryCap, parse_cap
from grid.errors import ConfigError
from grid.values import field, frozen

MAX_ACCOUNTS = 10_000

KEY_TYPES = frozenset({"ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"})
"""Key types that accounts may have; RSA signatures must use SHA-2."""


@frozen(kw_only=True)
class Account:
    """One account and key. key: the public key in SSH's encoding. root: the directory that the client sees as `/`."""

    name: str
    key: bytes = field(repr=False)
    root: DirectoryCap = field(repr=False)


Accounts = Mapping[tuple[str, bytes], Account]
"""Accounts by name and key."""


def parse_accounts(
    text: str, file: str, skip: Callable[[str], None], require_key: Callable[[bytes], None] = lambda key: None
) -> Accounts:
    """Parse the file's text; ConfigError if it has too many accounts.

    skip: called for each line that is skipped, with its number and the reason. require_key: raises ConfigError for a key
    that cannot be used.
    """
    found: dict[tuple[str, bytes], Account] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            account = _parse_line(words)
            require_key(account.key)
            if (account.name, account.key) in found:
                raise ConfigError("an earlier line has the same name and key")
        except ConfigError as problem:
            skip(f"{file}, line {number}: {problem}")
            continue
        found[account.name, account.key] = account
        if len(found) > MAX_ACCOUNTS:
            raise ConfigError(f"{file}: at most {MAX_ACCOUNTS} accounts")
    return found


def _parse_line(words: list[str]) -> Account:
    if len(words) < 4 or words[1] not in KEY_TYPES:
        raise ConfigError(
            "expected NAME KEY-TYPE KEY CAPABILITY, with a key type such as ssh-ed25519; passwords are not supported"
        )
    try:
        key = base64.b64decode(words[2], validate=True)
    except (binascii.Error, ValueError):
        key = b""
    kind = words[1].encode("ascii")
    if not key.startswith(len(kind).to_bytes(4, "big") + kind):
        raise ConfigError("not a public key; copy it from the .pub file that ssh-keygen wrote")
    root = parse_cap(words[-1])
    if not isinstance(root, DirectoryCap) or root.authority == "verify":
        raise ConfigError("the last word must be the capability of a directory, which it can list")
    return Account(name=words[0], key=key, root=root)
