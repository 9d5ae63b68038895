"""The protocol's paths: which endpoint and which share a request is for. [spec wire 14] Pure."""

from __future__ import annotations

import re
from enum import Enum

from grid.codec import base32
from grid.errors import FormatError
from grid.limits import MAX_SHARES
from grid.ports import ShareNumber, StorageIndex
from grid.values import frozen
from grid.wire.http.format.authority import CANCEL, RENEW, UPLOAD, WRITE_ENABLER

PREFIX = b"/storage/v1/"
STORE_PATH = PREFIX + b"grid-store"
FIND_PATH = PREFIX + b"grid-find"
SLOTS_PATH = PREFIX + b"grid-read-slots"


class Endpoint(Enum):
    """The endpoints. Those named BATCHED_ are an extension of this project's servers."""

    VERSION = "version"
    ADD_LEASE = "add lease"
    ALLOCATE = "allocate"
    WRITE = "write"
    ABORT = "abort"
    LIST_IMMUTABLE = "list immutable"
    READ_IMMUTABLE = "read immutable"
    ADVISE_IMMUTABLE = "advise immutable"
    READ_TEST_WRITE = "read-test-write"
    LIST_MUTABLE = "list mutable"
    READ_MUTABLE = "read mutable"
    ADVISE_MUTABLE = "advise mutable"
    BATCHED_FIND = "batched find"
    BATCHED_READ = "batched read"
    BATCHED_WRITE = "batched write"
    BATCHED_SLOT_READ = "batched slot read"
    BATCHED_STORE = "batched store"
    BATCHED_FINDS = "batched finds"
    BATCHED_SLOT_READS = "batched slot reads"

    __hash__ = object.__hash__  # There is one object for each; Enum's own hash is a call for each look at a table.


_LEASE = frozenset((RENEW, CANCEL))
REQUIRED_SECRETS = {
    Endpoint.ADD_LEASE: _LEASE,
    Endpoint.ALLOCATE: _LEASE | {UPLOAD},
    Endpoint.WRITE: frozenset((UPLOAD,)),
    Endpoint.ABORT: frozenset((UPLOAD,)),
    Endpoint.READ_TEST_WRITE: _LEASE | {WRITE_ENABLER},
    Endpoint.BATCHED_WRITE: frozenset((UPLOAD,)),
}
"""The kinds of secrets that a request must have; endpoints that are not listed need none."""

READS = frozenset(
    (
        Endpoint.LIST_IMMUTABLE,
        Endpoint.READ_IMMUTABLE,
        Endpoint.LIST_MUTABLE,
        Endpoint.READ_MUTABLE,
        Endpoint.BATCHED_FIND,
        Endpoint.BATCHED_READ,
        Endpoint.BATCHED_SLOT_READ,
        Endpoint.BATCHED_FINDS,
        Endpoint.BATCHED_SLOT_READS,
    )
)
"""The endpoints that are allowed unencrypted, if the server permits that at all."""

EXTENSIONS = frozenset(
    (
        Endpoint.BATCHED_FIND,
        Endpoint.BATCHED_READ,
        Endpoint.BATCHED_WRITE,
        Endpoint.BATCHED_SLOT_READ,
        Endpoint.BATCHED_STORE,
        Endpoint.BATCHED_FINDS,
        Endpoint.BATCHED_SLOT_READS,
    )
)
"""The endpoints that 1.20 does not have."""

_INDEX = rb"(?P<index>[a-z2-7]{26})"
_NUMBER = rb"(?P<number>[0-9]{1,20})"
_ROUTES: tuple[tuple[bytes, dict[bytes, Endpoint]], ...] = (
    # No path matches two of them, so those of most requests come first.
    (rb"immutable/" + _INDEX + rb"/grid-find", {b"POST": Endpoint.BATCHED_FIND}),
    (rb"immutable/" + _INDEX + rb"/grid-read", {b"POST": Endpoint.BATCHED_READ}),
    (rb"version", {b"GET": Endpoint.VERSION}),
    (rb"lease/" + _INDEX, {b"PUT": Endpoint.ADD_LEASE}),
    (rb"immutable/" + _INDEX, {b"POST": Endpoint.ALLOCATE}),
    (
        rb"immutable/" + _INDEX + rb"/" + _NUMBER,
        {b"PATCH": Endpoint.WRITE, b"GET": Endpoint.READ_IMMUTABLE},
    ),
    (rb"immutable/" + _INDEX + rb"/" + _NUMBER + rb"/abort", {b"PUT": Endpoint.ABORT}),
    (rb"immutable/" + _INDEX + rb"/shares", {b"GET": Endpoint.LIST_IMMUTABLE}),
    (rb"immutable/" + _INDEX + rb"/" + _NUMBER + rb"/corrupt", {b"POST": Endpoint.ADVISE_IMMUTABLE}),
    (rb"immutable/" + _INDEX + rb"/grid-write", {b"POST": Endpoint.BATCHED_WRITE}),
    (rb"grid-store", {b"POST": Endpoint.BATCHED_STORE}),
    (rb"grid-find", {b"POST": Endpoint.BATCHED_FINDS}),
    (rb"grid-read-slots", {b"POST": Endpoint.BATCHED_SLOT_READS}),
    (rb"mutable/" + _INDEX + rb"/read-test-write", {b"POST": Endpoint.READ_TEST_WRITE}),
    (rb"mutable/" + _INDEX + rb"/shares", {b"GET": Endpoint.LIST_MUTABLE}),
    (rb"mutable/" + _INDEX + rb"/" + _NUMBER, {b"GET": Endpoint.READ_MUTABLE}),
    (rb"mutable/" + _INDEX + rb"/" + _NUMBER + rb"/corrupt", {b"POST": Endpoint.ADVISE_MUTABLE}),
    (rb"mutable/" + _INDEX + rb"/grid-read", {b"POST": Endpoint.BATCHED_SLOT_READ}),
)
_COMPILED = tuple((re.compile(pattern), methods) for pattern, methods in _ROUTES)

_NO_INDEX = StorageIndex(bytes(16))
_NO_SHARE = ShareNumber(0)


@frozen
class Route:
    """An endpoint, and the share that it is for (zeros if it is for none)."""

    endpoint: Endpoint
    storage_index: StorageIndex = _NO_INDEX
    share_number: ShareNumber = _NO_SHARE


class UnknownPathError(FormatError):
    """No endpoint has this path."""


class WrongMethodError(FormatError):
    """The path's endpoints have other methods."""


def find_route(method: bytes, target: bytes) -> Route:
    """The route of a request; UnknownPathError or WrongMethodError."""
    path = target.partition(b"?")[0]
    if not path.startswith(PREFIX):
        raise UnknownPathError("no endpoint has this path")
    rest = path[len(PREFIX) :]
    for pattern, methods in _COMPILED:
        match = pattern.fullmatch(rest)
        if match is None:
            continue
        parts = match.groupdict()
        index = _parse_index(parts.get("index"))
        number = _parse_number(parts.get("number"))
        endpoint = methods.get(method)
        if endpoint is None:
            raise WrongMethodError("this path's endpoints have other methods")
        return Route(endpoint, index, number)
    raise UnknownPathError("no endpoint has this path")


def _parse_index(text: bytes | None) -> StorageIndex:
    if text is None:
        return _NO_INDEX
    try:
        return StorageIndex(base32.decode(text))
    except FormatError:
        raise UnknownPathError("a storage index that is not canonical") from None


def _parse_number(text: bytes | None) -> ShareNumber:
    number = int(text or b"0")
    if number >= MAX_SHARES:
        raise UnknownPathError("no share has this number")
    return ShareNumber(number)


def pack_path(storage_index: StorageIndex, kind: str, *rest: object) -> bytes:
    """The path of a resource under that storage index; kind: lease, immutable or mutable."""
    return "/".join(("/storage/v1", kind, base32.encode(storage_index), *map(str, rest))).encode("ascii")
