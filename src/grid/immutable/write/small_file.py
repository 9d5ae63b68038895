"""Turns a small file into whole shares at once, and chooses the servers that can receive them immediately.

A file is small if all its shares together fit into one message. Pure. [spec immutable 2, 3; placement 4]
"""

from __future__ import annotations

from collections.abc import Sequence

from grid import limits
from grid.caps import ChkCap, StorageIndex
from grid.crypto.hashing import tagged_hash
from grid.immutable.share.encode import Encoder, convergent_hasher
from grid.immutable.share.geometry import Geometry
from grid.immutable.share.layout import plan_layout, share_size
from grid.immutable.share.ueb import ueb_size
from grid.placement.assign import assign
from grid.ports import Buffer, ServerId, ShareNumber, StorageServer
from grid.values import field, frozen

ASK_FIRST_SIZE = 64 * 1024
"""From this share size on, first ask whether the file exists, because sending it in vain would cost more."""

ASK_FIRST_COUNT = 2
"""How many servers to ask that. If the file exists, the first servers in its order nearly always hold shares."""

_STORAGE_INDEX_TAG = b"allmydata_immutable_key_to_storage_index_v1"


@frozen(kw_only=True, eq=False)
class WholeFile:
    """All shares of a file, each as a list of pieces."""

    key: bytes = field(repr=False)
    cap: ChkCap = field(repr=False)
    storage_index: StorageIndex
    shares: Sequence[Sequence[Buffer]] = field(repr=False)

    @property
    def share_size(self) -> int:
        """Bytes of each share."""
        return sum(map(len, self.shares[0]))


def storage_index_of(key: bytes) -> StorageIndex:
    """The storage index of the file that is encrypted with this key."""
    return StorageIndex(tagged_hash(_STORAGE_INDEX_TAG, key, 16))


def whole_share_size(geometry: Geometry) -> int | None:
    """Bytes of each share of a small file; None if the file is not small."""
    if geometry.n * geometry.block_size > limits.STORE_CALL_BYTES:
        return None
    size = share_size(plan_layout(geometry), ueb_size(geometry))
    return size if geometry.n * size <= limits.STORE_CALL_BYTES else None  # One server may have to take all of them.


def encode_whole(data: Buffer, geometry: Geometry, key: bytes | None, convergence: bytes | None) -> WholeFile:
    """Encode a whole file. key: None to derive it from the data and the convergence secret."""
    if key is None:
        assert convergence is not None
        hasher = convergent_hasher(convergence, geometry)
        hasher.update(data)
        key = hasher.digest(16)
    encoder = Encoder(geometry, key)
    batch = encoder.encode_segments(0, data)
    encoder.absorb(batch)
    finished = encoder.finish()
    shares: list[tuple[Buffer, ...]] = [
        (encoder.header, *batch.pieces(number), *finished.trailer(number)) for number in range(geometry.n)
    ]
    return WholeFile(key=key, cap=finished.read_cap(key), storage_index=storage_index_of(key), shares=shares)


def place_whole(ordered: Sequence[StorageServer], n: int, size: int) -> dict[ServerId, list[ShareNumber]] | None:
    """Shares for each server, each of size bytes; None unless enough servers are known to have room.

    Enough means n of the first 2n servers, or all if there are fewer than n. Servers of which nothing is known must be asked first.
    """
    candidates = ordered[: 2 * n]
    ready = []
    for server in candidates:
        version = server.known_version
        if version is not None and version.maximum_immutable_share_size >= size:
            ready.append(server.identity.server_id)
    if not ready or len(ready) < min(n, len(candidates)):
        return None
    placed: dict[ServerId, list[ShareNumber]] = {}
    for share, server_id in assign(ready, [], n, {}).items():
        placed.setdefault(server_id, []).append(share)
    return placed
