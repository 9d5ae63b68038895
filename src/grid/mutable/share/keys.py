"""The keys of a mutable file: those in a capability, and those derived from them. [spec mutable 3]

Pure. Holds secrets, which no repr shows. The stored bytes of a private key are never regenerated.
"""

from __future__ import annotations

import hmac

from grid.caps import (
    DirectoryCap,
    KnownCap,
    MdmfReadCap,
    MdmfVerifyCap,
    MdmfWriteCap,
    SdmfReadCap,
    SdmfVerifyCap,
    SdmfWriteCap,
    StorageIndex,
)
from grid.crypto.aes import crypt_once
from grid.crypto.hashing import tagged_hash, tagged_pair_hash
from grid.crypto.rsa import PrivateKey, PublicKey, parse_private_key, parse_public_key
from grid.errors import AuthorityError, CapError, IntegrityError
from grid.mutable.share.geometry import MDMF_VERSION, SDMF_VERSION
from grid.values import field, frozen

WriteCap = SdmfWriteCap | MdmfWriteCap
ReadCap = SdmfReadCap | MdmfReadCap
VerifyCap = SdmfVerifyCap | MdmfVerifyCap
MutableCap = WriteCap | ReadCap | VerifyCap

_DATA_KEY_TAG = b"allmydata_mutable_readkey_to_datakey_v1"
_WRITE_KEY_TAG = b"allmydata_mutable_privkey_to_writekey_v1"


@frozen(kw_only=True)
class FileKeys:
    """What a capability lets its holder do. version: the share format that a writer with this capability uses."""

    version: int
    storage_index: StorageIndex
    fingerprint: bytes
    read_key: bytes | None = field(repr=False)
    write_key: bytes | None = field(repr=False)

    @classmethod
    def of_cap(cls, cap: KnownCap) -> FileKeys:
        """The keys in the capability of a mutable file or directory; CapError for any other capability."""
        body = cap.body if isinstance(cap, DirectoryCap) else cap
        if not isinstance(body, MutableCap):
            raise CapError("this is not the capability of a mutable file")
        mdmf = isinstance(body, MdmfWriteCap | MdmfReadCap | MdmfVerifyCap)
        return cls(
            version=MDMF_VERSION if mdmf else SDMF_VERSION,
            storage_index=body.storage_index,
            fingerprint=body.fingerprint,
            read_key=None if isinstance(body, VerifyCap) else body.read_key,
            write_key=body.write_key if isinstance(body, WriteCap) else None,
        )

    def require_read_key(self) -> bytes:
        """The read key; AuthorityError if the capability has none."""
        if self.read_key is None:
            raise AuthorityError("a verify capability cannot read the file: use its read or write capability")
        return self.read_key

    def require_write_key(self) -> bytes:
        """The write key; AuthorityError if the capability has none."""
        if self.write_key is None:
            raise AuthorityError("this capability cannot change the file: use its write capability")
        return self.write_key

    def accept_public_key(self, der: bytes) -> PublicKey:
        """Prove and parse the file's public key; IntegrityError or FormatError if these are not its bytes."""
        # Hash before parsing, so that only the file's own key reaches the parser.
        expected = tagged_hash(b"allmydata_mutable_pubkey_to_fingerprint_v1", der)
        if not hmac.compare_digest(expected, self.fingerprint):
            raise IntegrityError("the public key is not that of the file")
        return parse_public_key(der)

    def accept_private_key(self, encrypted: bytes) -> PrivateKey:
        """Prove and decrypt the file's private key; IntegrityError if these are not its bytes, AuthorityError without the write key."""
        write_key = self.require_write_key()
        der = crypt_once(write_key, encrypted)
        if not hmac.compare_digest(tagged_hash(_WRITE_KEY_TAG, der, 16), write_key):
            raise IntegrityError("the encrypted private key is not that of the file")
        return parse_private_key(der)


def encrypt_private_key(key: PrivateKey) -> bytes:
    """The encrypted private key that every share stores. It stays the same for the life of the file."""
    return crypt_once(key.write_key, key.der)


def data_key(read_key: bytes, salt: bytes) -> bytes:
    """The 16-byte key that encrypts the segment with this salt."""
    return tagged_pair_hash(_DATA_KEY_TAG, salt, read_key, 16)


def write_cap(key: PrivateKey, version: int) -> WriteCap:
    """The write capability of the file with this key."""
    kind = MdmfWriteCap if version == MDMF_VERSION else SdmfWriteCap
    return kind(write_key=key.write_key, fingerprint=key.public_key.fingerprint)
