"""The order of the servers for a storage index: the same on every client, and different for every file.

Owns the permutation and its seeds. It never decides whether a server may be used. [spec placement 1]
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
    """The servers in the order in which this file's shares are placed and searched, with the preferred ones first."""

    def position(server: StorageServer) -> tuple[bool, bytes]:
        identity = server.identity
        return identity.server_id not in preferred, permutation_key(storage_index, identity.permutation_seed)

    return sorted(servers, key=position)


def permutation_key(storage_index: StorageIndex, seed: bytes) -> bytes:
    """The 20-byte sort key of a server, ascending."""
    return hashlib.sha1(storage_index + seed, usedforsecurity=False).digest()


def permutation_seed(server_id: ServerId, announced_base32: str | None) -> bytes:
    """A server's seed: the announced `permutation-seed-base32`, or else one derived from its id.

    FormatError if that text is not base32.
    """
    if announced_base32 is not None:
        return decode_lax(announced_base32)
    if _INTRODUCED_ID.fullmatch(server_id):
        return decode_lax(server_id.removeprefix("v0-"))
    return hashlib.sha256(server_id.encode()).digest()
