"""Lease records of both container kinds, and the rule for adding or renewing a lease. Pure.

Secrets are kept as the container's version stores them: plain in version 1, hashed in version 2. They are
compared in constant time, and no repr shows them. [spec storage-server 3, 4.4, 6]
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from hashlib import blake2b
from hmac import compare_digest

from grid.ports import Buffer, LeaseSecrets
from grid.values import field, frozen

PERIOD_S = 31 * 86400
"""Duration of a lease from when it was added or renewed."""

NODE_ID_SIZE = 20
NO_OWNER = 0
"""In a mutable container: an empty slot. In an immutable one: an ordinary owner."""
ALLOCATION_OWNER = 0
RENEWAL_OWNER = 1
"""The owner numbers written by an allocation, and by every other operation. [spec storage-server 6]"""

LATEST = 2**32 - 1

_SHARE_LEASE = struct.Struct(">L32s32sL")
_SLOT_LEASE = struct.Struct(">LL32s32s20s")
SHARE_LEASE_SIZE = _SHARE_LEASE.size
SLOT_LEASE_SIZE = _SLOT_LEASE.size
SHARE_LEASE_TIME_OFFSET = 68
SLOT_LEASE_TIME_OFFSET = 4
"""Offset of the 4-byte expiration time in a record of an immutable share, and of a mutable one."""
EMPTY_SLOT_LEASE = bytes(SLOT_LEASE_SIZE)


@frozen(kw_only=True)
class Lease:
    """A stored lease. expires: Unix time in seconds; renew, cancel: as the container's version stores them."""

    owner: int
    expires: int
    renew: bytes = field(repr=False)
    cancel: bytes = field(repr=False)
    node_id: bytes = field(default=bytes(NODE_ID_SIZE), repr=False)

    @property
    def granted(self) -> int:
        """When it was last added or renewed."""
        return self.expires - PERIOD_S


def expiration(now: float) -> int:
    """The expiration time of a lease granted now."""
    return min(max(int(now), 0) + PERIOD_S, LATEST)


def stored_secret(secret: bytes, version: int) -> bytes:
    """The secret as containers of this version store it."""
    return secret if version == 1 else blake2b(secret, digest_size=32).digest()


def new_lease(secrets: LeaseSecrets, *, version: int, owner: int, now: float, node_id: bytes) -> Lease:
    """A lease for these secrets, granted now by the server with that node id."""
    return Lease(
        owner=owner,
        expires=expiration(now),
        renew=stored_secret(secrets.renew, version),
        cancel=stored_secret(secrets.cancel, version),
        node_id=node_id,
    )


def find_lease(leases: Iterable[Lease | None], lease: Lease) -> int | None:
    """Index of the first lease with this one's renew secret. None entries are empty slots."""
    for index, held in enumerate(leases):
        if held is not None and compare_digest(held.renew, lease.renew):
            return index
    return None


def pack_share_lease(lease: Lease) -> bytes:
    """The 72-byte record of a lease in an immutable container; it has no node id."""
    return _SHARE_LEASE.pack(lease.owner, lease.renew, lease.cancel, lease.expires)


def parse_share_lease(record: Buffer) -> Lease:
    """Parse a 72-byte record; any 72 bytes are a lease."""
    owner, renew, cancel, expires = _SHARE_LEASE.unpack(record)
    return Lease(owner=owner, expires=expires, renew=renew, cancel=cancel)


def pack_slot_lease(lease: Lease | None) -> bytes:
    """The 92-byte record of a lease in a mutable container; None: an empty slot."""
    if lease is None:
        return EMPTY_SLOT_LEASE
    return _SLOT_LEASE.pack(lease.owner, lease.expires, lease.renew, lease.cancel, lease.node_id)


def parse_slot_lease(record: Buffer) -> Lease | None:
    """Parse a 92-byte record; None if the slot is empty, whatever its other bytes."""
    owner, expires, renew, cancel, node_id = _SLOT_LEASE.unpack(record)
    if owner == NO_OWNER:
        return None
    return Lease(owner=owner, expires=expires, renew=renew, cancel=cancel, node_id=node_id)


def pack_time(expires: int) -> bytes:
    """The 4 bytes of an expiration time."""
    return expires.to_bytes(4, "big")
