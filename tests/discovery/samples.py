"""Announcements for tests."""

from __future__ import annotations

from typing import Any

from grid.codec.key_text import pack_bare_key
from grid.crypto.ed25519 import SigningKey
from grid.discovery.announcement import Announcement, SignedAnnouncement, sign, storage_fields, verify

KEYS = [SigningKey(bytes([index]) * 32) for index in range(4)]
IDS = [pack_bare_key(key.verifying_key) for key in KEYS]


def furl(letter: str = "a", hint: str = "tcp:127.0.0.1:1") -> str:
    return f"pb://{letter * 32}@{hint}/swissnum"


def fields(seqnum: Any = 1, **changes: Any) -> dict[str, Any]:
    """A storage server's announcement; a change to None removes a field."""
    made = storage_fields(nickname="nick", version="grid/1", seqnum=0, nonce=bytes(32), furl=furl())
    made.update(changes, seqnum=seqnum)
    return {key: value for key, value in made.items() if value is not None}


def signed(index: int = 0, seqnum: Any = 1, **changes: Any) -> SignedAnnouncement:
    changes.setdefault("anonymous-storage-FURL", furl("abcd"[index]))
    return sign(fields(seqnum, **changes), KEYS[index])


def announcement(index: int = 0, seqnum: Any = 1, **changes: Any) -> Announcement:
    return verify(signed(index, seqnum, **changes))
