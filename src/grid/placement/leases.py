"""The secrets that a client sends to a server, for its leases and for writes to a mutable slot.

Owns their derivation. They are never logged, and each server gets different ones. [spec storage-server 5]
"""

from __future__ import annotations

from functools import lru_cache

from attrs import field, validators

from grid.caps import StorageIndex
from grid.crypto.hashing import tagged_hash, tagged_pair_hash
from grid.ports import LeaseSecrets
from grid.values import frozen

_CLIENT_RENEWAL = b"allmydata_client_renewal_secret_v1"
_CLIENT_CANCEL = b"allmydata_client_cancel_secret_v1"
_FILE_RENEWAL_TAG = b"allmydata_file_renewal_secret_v1"
_FILE_CANCEL_TAG = b"allmydata_file_cancel_secret_v1"
_SERVER_RENEWAL_TAG = b"allmydata_bucket_renewal_secret_v1"
_SERVER_CANCEL_TAG = b"allmydata_bucket_cancel_secret_v1"
_UPLOAD_TAG = b"grid_upload_secret_v1"
_ENABLER_MASTER_TAG = b"allmydata_mutable_writekey_to_write_enabler_master_v1"
_ENABLER_TAG = b"allmydata_mutable_write_enabler_master_and_nodeid_to_write_enabler_v1"


@frozen
class LeaseMaster:
    """A node's 32-byte lease secret, from which the secrets of all its leases are derived."""

    master: bytes = field(repr=False, validator=[validators.min_len(32), validators.max_len(32)])

    def secrets_for(self, storage_index: StorageIndex, lease_seed: bytes) -> LeaseSecrets:
        """The secrets of this node's leases on the file at the server. lease_seed: from the server's identity."""
        renewal, cancel = _file_secrets(self.master, storage_index)
        return LeaseSecrets(
            renew=tagged_pair_hash(_SERVER_RENEWAL_TAG, renewal, lease_seed),
            cancel=tagged_pair_hash(_SERVER_CANCEL_TAG, cancel, lease_seed),
        )

    def upload_secret_for(self, storage_index: StorageIndex, lease_seed: bytes) -> bytes:
        """The secret by which this node, in any process, goes on with its upload of the file to the server."""
        _, cancel = _file_secrets(self.master, storage_index)
        return tagged_pair_hash(_UPLOAD_TAG, cancel, lease_seed)


@lru_cache(maxsize=128)
def _file_secrets(master: bytes, storage_index: StorageIndex) -> tuple[bytes, bytes]:
    """The common part of the secrets of one file's leases on all servers; cached for as many files as are put at once."""
    # The master secret is the tag here, and the constant is the value.
    renewal, cancel = tagged_hash(master, _CLIENT_RENEWAL), tagged_hash(master, _CLIENT_CANCEL)
    return (
        tagged_pair_hash(_FILE_RENEWAL_TAG, renewal, storage_index),
        tagged_pair_hash(_FILE_CANCEL_TAG, cancel, storage_index),
    )


def write_enabler(write_key: bytes, lease_seed: bytes) -> bytes:
    """The 32 bytes that let the holder of a 16-byte write key write to the slot on one server."""
    return tagged_pair_hash(_ENABLER_TAG, tagged_hash(_ENABLER_MASTER_TAG, write_key), lease_seed)
