"""One request of each kind with the largest possible answer, for clients that never read it.

By endpoint and by remote method, so that a test can compare the tables with what a storage node offers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen
from foolscap.api import Referenceable

from grid.codec import base32
from grid.limits import READ_CALL_BYTES
from grid.ports import Find, LeaseSecrets, NewShares, Range, ShareNumber, ShareWrite, SlotSecrets, StorageIndex
from grid.wire.http.format.authority import CANCEL, RENEW, UPLOAD, WRITE_ENABLER
from grid.wire.http.format.bodies import pack_allocation_request, pack_reason, pack_slot_request
from grid.wire.http.format.frames import pack_write
from grid.wire.http.format.routes import FIND_PATH, SLOTS_PATH, STORE_PATH, Endpoint, pack_path
from grid.wire.packed.find_messages import pack_finds
from grid.wire.packed.share_ranges import pack_ranges, pack_wants, pack_writes
from grid.wire.packed.slots import pack_slot_wants, pack_slot_write
from grid.wire.packed.store_messages import pack_stores

SHARE_SIZE = 2**20
SHARE_COUNT = 250
INDEX = StorageIndex(bytes(range(16)))
SLOT = StorageIndex(bytes(range(16, 32)))
FREE = StorageIndex(bytes(16))
SECRETS = SlotSecrets(write_enabler=b"w" * 32, lease=LeaseSecrets(renew=b"r" * 32, cancel=b"c" * 32))

WHOLE: list[Range] = [(0, SHARE_SIZE)]
PART: list[Range] = [(0, READ_CALL_BYTES // SHARE_COUNT - 64)]
"""Of each share so much that all of them together just fit one answer."""
ALL: frozenset[ShareNumber] = frozenset()
SOME = frozenset(map(ShareNumber, range(31)))
STORE = pack_stores([NewShares(storage_index=FREE, secrets=SECRETS.lease, shares={ShareNumber(0): (bytes(2**19),)})])
FINDS = pack_finds([Find(INDEX, [(0, READ_CALL_BYTES)]), Find(INDEX, PART)])
SLOTS = pack_finds([Find(SLOT, [(0, READ_CALL_BYTES)]), Find(SLOT, PART)])

_LEASE = {RENEW: SECRETS.lease.renew, CANCEL: SECRETS.lease.cancel}
WRITE_SECRETS: dict[str, bytes] = {**_LEASE, WRITE_ENABLER: SECRETS.write_enabler}


@frozen
class HttpRequest:
    """A request by hand."""

    method: str
    path: bytes
    body: bytes = b""
    secrets: Mapping[str, bytes] = {}
    headers: Sequence[tuple[bytes, bytes]] = ()


def slot_read(numbers: frozenset[ShareNumber], ranges: Sequence[Range]) -> HttpRequest:
    """Ranges of those shares of SLOT."""
    return HttpRequest("POST", pack_path(SLOT, "mutable", "grid-read"), pack_slot_wants(numbers, ranges))


def _slot_write(ranges: Sequence[Range]) -> HttpRequest:
    body = b"".join(pack_slot_request({}, ranges))
    return HttpRequest("POST", pack_path(SLOT, "mutable", "read-test-write"), body, WRITE_SECRETS)


HTTP: dict[Endpoint, list[HttpRequest]] = {
    Endpoint.VERSION: [HttpRequest("GET", b"/storage/v1/version")],
    Endpoint.ADD_LEASE: [HttpRequest("PUT", pack_path(INDEX, "lease"), secrets=_LEASE)],
    Endpoint.ALLOCATE: [
        HttpRequest(
            "POST", pack_path(FREE, "immutable"), pack_allocation_request([1], 1000), {**_LEASE, UPLOAD: b"u" * 20}
        )
    ],
    Endpoint.WRITE: [
        HttpRequest(
            "PATCH",
            pack_path(FREE, "immutable", 1),
            bytes(1000),
            {UPLOAD: b"u" * 20},
            [(b"Content-Range", b"bytes 0-999/*")],
        )
    ],
    Endpoint.ABORT: [HttpRequest("PUT", pack_path(FREE, "immutable", 1, "abort"), secrets={UPLOAD: b"u" * 20})],
    Endpoint.LIST_IMMUTABLE: [HttpRequest("GET", pack_path(INDEX, "immutable", "shares"))],
    Endpoint.READ_IMMUTABLE: [HttpRequest("GET", pack_path(INDEX, "immutable", 255))],
    Endpoint.ADVISE_IMMUTABLE: [HttpRequest("POST", pack_path(INDEX, "immutable", 0, "corrupt"), pack_reason("bad"))],
    Endpoint.READ_TEST_WRITE: [_slot_write(PART), _slot_write(WHOLE)],
    Endpoint.LIST_MUTABLE: [HttpRequest("GET", pack_path(SLOT, "mutable", "shares"))],
    Endpoint.READ_MUTABLE: [HttpRequest("GET", pack_path(SLOT, "mutable", 255))],
    Endpoint.ADVISE_MUTABLE: [HttpRequest("POST", pack_path(SLOT, "mutable", 0, "corrupt"), pack_reason("bad"))],
    Endpoint.BATCHED_FIND: [
        HttpRequest("POST", pack_path(INDEX, "immutable", "grid-find"), pack_ranges([(0, 2**16)])),
        HttpRequest("POST", pack_path(INDEX, "immutable", "grid-find"), pack_ranges(WHOLE)),
    ],
    Endpoint.BATCHED_READ: [
        HttpRequest("POST", pack_path(INDEX, "immutable", "grid-read"), pack_wants(dict.fromkeys(SOME, WHOLE)))
    ],
    Endpoint.BATCHED_WRITE: [
        HttpRequest(
            "POST",
            pack_path(FREE, "immutable", "grid-write"),
            b"".join(pack_write([ShareWrite(ShareNumber(1), 0, [bytes(1000)])])[0]),
            {UPLOAD: b"u" * 20},
        )
    ],
    Endpoint.BATCHED_SLOT_READ: [slot_read(ALL, PART), slot_read(SOME, WHOLE), slot_read(ALL, WHOLE)],
    Endpoint.BATCHED_STORE: [HttpRequest("POST", STORE_PATH, STORE)],
    Endpoint.BATCHED_FINDS: [HttpRequest("POST", FIND_PATH, FINDS)],
    Endpoint.BATCHED_SLOT_READS: [HttpRequest("POST", SLOTS_PATH, SLOTS)],
}


@frozen(kw_only=True)
class References:
    """Remote objects of one connection."""

    server: Any
    reader: Any
    writer: Any
    upload: Any


Call = tuple[Any, str, list[Any]]
"""The object, the method, and its arguments."""

_INDEX_AND_LEASE = [INDEX, SECRETS.lease.renew, SECRETS.lease.cancel]
SLOT_SECRETS = (SECRETS.write_enabler, SECRETS.lease.renew, SECRETS.lease.cancel)


def _packed_write() -> list[Any]:
    packed = pack_slot_write(SECRETS, {}, [(0, READ_CALL_BYTES // 256)])
    assert packed is not None
    return [SLOT, *packed]


FOOLSCAP: dict[tuple[str, str], Callable[[References], list[Call]]] = {
    ("RIBucketWriter", "write"): lambda at: [(at.writer, "write", [0, bytes(2**20)])],
    ("RIBucketWriter", "close"): lambda at: [(at.writer, "close", [])],
    ("RIBucketWriter", "abort"): lambda at: [(at.writer, "abort", [])],
    ("RIBucketReader", "read"): lambda at: [
        (at.reader, "read", [0, READ_CALL_BYTES]),
        (at.reader, "read", [0, 2 * READ_CALL_BYTES]),
    ],
    ("RIBucketReader", "advise_corrupt_share"): lambda at: [(at.reader, "advise_corrupt_share", [b"bad"])],
    ("RIShareUpload", "write"): lambda at: [
        (at.upload, "write", list(pack_writes([ShareWrite(ShareNumber(254), 0, [bytes(2**20)])])))
    ],
    ("RIShareUpload", "close"): lambda at: [(at.upload, "close", [{254}])],
    ("RIShareUpload", "abort"): lambda at: [(at.upload, "abort", [{254}])],
    ("RIStorageServer", "get_version"): lambda at: [(at.server, "get_version", [])],
    ("RIStorageServer", "allocate_buckets"): lambda at: [
        (at.server, "allocate_buckets", [*_INDEX_AND_LEASE, {0}, 10, Referenceable()])
    ],
    ("RIStorageServer", "grid_allocate"): lambda at: [
        (at.server, "grid_allocate", [*_INDEX_AND_LEASE, {0}, 10, Referenceable()])
    ],
    ("RIStorageServer", "add_lease"): lambda at: [(at.server, "add_lease", _INDEX_AND_LEASE)],
    ("RIStorageServer", "get_buckets"): lambda at: [(at.server, "get_buckets", [INDEX])],
    ("RIStorageServer", "slot_readv"): lambda at: [
        (at.server, "slot_readv", [SLOT, [], WHOLE]),
        (at.server, "slot_readv", [SLOT, [], PART]),
        (at.server, "slot_readv", [SLOT, [255], [(0, 2 * READ_CALL_BYTES)]]),
    ],
    ("RIStorageServer", "slot_testv_and_readv_and_writev"): lambda at: [
        (at.server, "slot_testv_and_readv_and_writev", [SLOT, SLOT_SECRETS, {}, PART]),
        (at.server, "slot_testv_and_readv_and_writev", [SLOT, SLOT_SECRETS, {}, WHOLE]),
    ],
    ("RIStorageServer", "advise_corrupt_share"): lambda at: [
        (at.server, "advise_corrupt_share", [b"immutable", INDEX, 0, b"bad"])
    ],
    ("RIStorageServer", "grid_find_shares"): lambda at: [(at.server, "grid_find_shares", [INDEX, pack_ranges(PART)])],
    ("RIStorageServer", "grid_find_each"): lambda at: [(at.server, "grid_find_each", [FINDS])],
    ("RIStorageServer", "grid_read_shares"): lambda at: [
        (at.server, "grid_read_shares", [INDEX, pack_wants(dict.fromkeys(SOME, WHOLE))])
    ],
    ("RIStorageServer", "grid_read_slot"): lambda at: [
        (at.server, "grid_read_slot", [SLOT, pack_slot_wants(SOME, WHOLE)]),
        (at.server, "grid_read_slot", [SLOT, pack_slot_wants(ALL, [(0, READ_CALL_BYTES // 64)])]),
    ],
    ("RIStorageServer", "grid_write_slot"): lambda at: [(at.server, "grid_write_slot", _packed_write())],
    ("RIStorageServer", "grid_store_shares"): lambda at: [(at.server, "grid_store_shares", [STORE])],
}


def http_path(request: HttpRequest) -> str:
    """For messages."""
    return f"{request.method} {request.path.decode().replace(base32.encode(SLOT), 'SLOT')}"
