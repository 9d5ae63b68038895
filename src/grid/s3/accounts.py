"""Access keys and what they open, and the file format that holds them. Pure.

The file contains secrets, because checking a signature requires them. It is private to its owner, and nothing here is
logged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from grid.caps import DirectoryCap, parse_cap
from grid.directory.metadata import seconds_in
from grid.errors import CapError, ConfigError
from grid.values import field, frozen

MAX_KEYS = 10_000

PUBLIC = ""
"""The access key that stands for everybody: its buckets are public. No signed request can name it."""

_BUCKET = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
"""Labels of a host name, separated by periods."""

_ADDRESS = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+")


@frozen(kw_only=True)
class Account:
    """An access key. buckets: directories by bucket name.

    home: a directory whose subdirectories are buckets too, and in which buckets can be created. The capabilities of a
    read-only key permit only reading.
    """

    access_key: str
    secret: str = field(repr=False)
    buckets: Mapping[str, DirectoryCap] = field(factory=dict, repr=False)
    home: DirectoryCap | None = field(default=None, repr=False)
    created: float = 0.0

    @property
    def is_read_only(self) -> bool:
        """Whether the key permits no changes."""
        caps = [*self.buckets.values(), *([self.home] if self.home else [])]
        return all(cap.authority != "write" for cap in caps)


def is_bucket_name(name: str) -> bool:
    """Whether S3 permits a bucket of this name."""
    return 3 <= len(name) <= 63 and bool(_BUCKET.fullmatch(name)) and not _ADDRESS.fullmatch(name)


def parse_accounts(text: str, file: str) -> dict[str, Account]:
    """Parse the file's text into accounts by access key; ConfigError, which names the file."""
    try:
        said = json.loads(text)
        found = [_account(each) for each in said["keys"]]
        if said.get("public"):
            found.append(everybody({_text(name): _directory(cap) for name, cap in said["public"].items()}))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, CapError):
        raise ConfigError(f"{file}: not a file of access keys; restore it, or remove it and make new keys") from None
    return {account.access_key: account for account in found}


def pack_accounts(accounts: Mapping[str, Account]) -> str:
    """The text of the file."""
    keys = [
        {
            "access_key": account.access_key,
            "secret": account.secret,
            "buckets": {name: cap.to_string() for name, cap in account.buckets.items()},
            "home": None if account.home is None else account.home.to_string(),
            "created": account.created,
        }
        for account in accounts.values()
        if account.access_key != PUBLIC
    ]
    public = accounts.get(PUBLIC)
    named = {name: cap.to_string() for name, cap in public.buckets.items()} if public is not None else {}
    return json.dumps({"version": 1, "keys": keys, "public": named}, indent=1) + "\n"


def everybody(buckets: Mapping[str, DirectoryCap]) -> Account:
    """The account of requests that are not signed, which can read these buckets."""
    return Account(access_key=PUBLIC, secret="", buckets={name: cap.read_cap() for name, cap in buckets.items()})


def _account(said: Mapping[str, object]) -> Account:
    buckets, home, created = said["buckets"], said["home"], said.get("created", 0)
    if not isinstance(buckets, dict) or (moment := seconds_in(created)) is None:
        raise ValueError
    return Account(
        access_key=_text(said["access_key"]),
        secret=_text(said["secret"]),
        buckets={_text(name): _directory(cap) for name, cap in buckets.items()},
        home=None if home is None else _directory(home),
        created=moment,
    )


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _directory(text: object) -> DirectoryCap:
    cap = parse_cap(_text(text))
    if not isinstance(cap, DirectoryCap):
        raise ValueError
    return cap
