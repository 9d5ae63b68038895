"""The order of the servers for a storage index: the same at every client, a different one for every file.

Owns the permutation and its seeds. Never decides whether a server may be used. [spec placement 1]
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

from grid.caps import StorageIndex
from grid.codec.base32 import decode_lax
from grid.ports import ServerId, StorageServer

_INTRODUCED_ID = re.compile(r"v0-[0-9a-zA-Z]{52}")


def permute(
    servers: Iterable[StorageServer], storage_index: StorageIndex, preferred: Collection[ServerId] = frozenset()
) -> list[StorageServer]:
    """The servers in the order in which this file's shares are placed and looked for, the preferred ones first."""

    def position(server: StorageServer) -> tuple[bool, bytes]:
        identity = server.identity
        return identity.server_id not in preferred, permutation_key(storage_index, identity.permutation_seed)

    return sorted(servers, key=position)


def permutation_key(storage_index: StorageIndex, seed: bytes) -> bytes:
    """The 20 bytes that servers are ordered by, ascending."""
    return hashlib.sha1(storage_index + seed, usedforsecurity=False).digest()


def permutation_seed(server_id: ServerId, announced_base32: str | None) -> bytes:
    """The seed of a server: what it announced as `permutation-seed-base32`, else what its id gives.

    FormatError if the text that counts is not base32.
    """
    if announced_base32 is not None:
        return decode_lax(announced_base32)
    if _INTRODUCED_ID.fullmatch(server_id):
        return decode_lax(server_id.removeprefix("v0-"))
    return hashlib.sha256(server_id.encode()).digest()
