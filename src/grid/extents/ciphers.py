"""The keys of files in a pack, and their encryption. Pure. [spec extents 1]

Never gives one key to two different files.
"""

from __future__ import annotations

from grid.codec.netstring import pack_netstring
from grid.crypto.aes import CtrCipher, crypt_once
from grid.crypto.hashing import tagged_hash
from grid.ports import Buffer

KEY_SIZE = 16

_KEY_TAG = b"grid_slice_content_to_key_v1+"


def slice_key(secret: bytes, plaintext: Buffer) -> bytes:
    """The key of a file in every pack of this convergence secret."""
    return tagged_hash(_KEY_TAG + pack_netstring(secret), plaintext, KEY_SIZE)


def encrypt_slice(key: bytes, plaintext: Buffer) -> bytes:
    """What a pack holds of a file."""
    return crypt_once(key, plaintext)


def decrypt_slice(key: bytes, ciphertext: Buffer, offset: int = 0) -> bytes:
    """The bytes of a file from `offset` on, of which this is the ciphertext."""
    return CtrCipher(key, offset).crypt(ciphertext)
