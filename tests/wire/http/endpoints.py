"""Every endpoint with a valid request, and a server with shares to ask for."""

from __future__ import annotations

from collections.abc import Mapping

from grid.codec import base32
from grid.ports import ShareNumber, StorageIndex
from grid.wire.http.format.answers import parse_allocation
from grid.wire.http.format.authority import CANCEL, RENEW, UPLOAD, WRITE_ENABLER
from grid.wire.http.format.bodies import pack_allocation_request, pack_reason, pack_slot_request
from tests.contract.storage_server import put, slot_secrets, vector
from tests.contract.storage_server import share_numbers as numbers
from tests.wire.http.rig import Rig, ask

INDEX = StorageIndex(bytes(range(16)))
SLOT = StorageIndex(bytes(range(16, 32)))
SI, MSI = base32.encode(INDEX), base32.encode(SLOT)
FREE = base32.encode(bytes(16))

LEASE = {RENEW: b"r" * 32, CANCEL: b"c" * 32}
ALLOCATE = {**LEASE, UPLOAD: b"secret"}
WRITE = {**LEASE, WRITE_ENABLER: b"w" * 32}
ALLOCATION = pack_allocation_request([0, 1], 10)
SLOT_WRITE = b"".join(pack_slot_request({ShareNumber(0): vector((0, b"data"))}, []))
REASON = pack_reason("bad")

ENDPOINTS: dict[str, tuple[str, str, Mapping[str, bytes], bytes | None, int]] = {
    "version": ("GET", "version", {}, None, 200),
    "add lease": ("PUT", f"lease/{SI}", LEASE, b"", 204),
    "allocate": ("POST", f"immutable/{FREE}", ALLOCATE, ALLOCATION, 200),
    "write": ("PATCH", f"immutable/{SI}/7", {UPLOAD: b"secret"}, b"x", 416),
    "abort": ("PUT", f"immutable/{SI}/7/abort", {UPLOAD: b"secret"}, b"", 200),
    "list": ("GET", f"immutable/{SI}/shares", {}, None, 200),
    "read": ("GET", f"immutable/{SI}/3", {}, None, 200),
    "corrupt": ("POST", f"immutable/{SI}/3/corrupt", {}, REASON, 200),
    "read-test-write": ("POST", f"mutable/{MSI}/read-test-write", WRITE, SLOT_WRITE, 200),
    "list mutable": ("GET", f"mutable/{MSI}/shares", {}, None, 200),
    "read mutable": ("GET", f"mutable/{MSI}/1", {}, None, 200),
    "corrupt mutable": ("POST", f"mutable/{MSI}/1/corrupt", {}, REASON, 200),
    "batched find": ("POST", f"immutable/{SI}/grid-find", {}, b"", 200),
    "batched read": ("POST", f"immutable/{SI}/grid-read", {}, b"", 200),
    "batched write": ("POST", f"immutable/{SI}/grid-write", {UPLOAD: b"secret"}, b"\0\0", 200),
    "batched slot read": ("POST", f"mutable/{MSI}/grid-read", {}, b"\0\0", 200),
    "whole store": ("POST", "grid-store", {}, b"", 200),
    "batched finds": ("POST", "grid-find", {}, b"", 200),
}


async def fill(rig: Rig) -> None:
    """Share 3 of INDEX finished, 7 in progress; share 1 of SLOT."""
    await put(rig.service, INDEX, {3: b"0123456789"})
    reply = await ask(rig, "POST", f"immutable/{SI}", [pack_allocation_request([7], 10)], secrets=ALLOCATE)
    assert parse_allocation(reply.body) == (numbers(3), numbers(7))
    await rig.service.test_and_write(SLOT, slot_secrets(), {ShareNumber(1): vector((0, b"mutable share"))})


async def ask_endpoint(rig: Rig, name: str, secrets: Mapping[str, bytes] | None = None, **options: object) -> int:
    method, path, usual, body, _ = ENDPOINTS[name]
    given_secrets = usual if secrets is None else secrets
    reply = await ask(rig, method, path, None if body is None else [body], secrets=given_secrets, **options)  # type: ignore[arg-type]
    assert b"Traceback" not in bytes(reply.body)
    return reply.status


async def stop(rig: Rig) -> None:
    await rig.service.stop()  # type: ignore[attr-defined]
