"""The keys of files in a pack, and their encryption. Pure. [spec extents 1]

Two different files never get the same key.
"""

from __future__ import annotations

from grid.codec.netstring import pack_netstring
from grid.crypto.aes import CtrCipher, crypt_once
from grid.crypto.hashing import tagged_hash
from grid.ports import Buffer

KEY_SIZE = 16

_KEY_TAG = b"grid_slice_content_to_key_v1+"


def slice_key(secret: bytes, plaintext: Buffer) -> bytes:
    """The key of a file in every pack that uses this convergence secret."""
    return tagged_hash(_KEY_TAG + pack_netstring(secret), plaintext, KEY_SIZE)


def encrypt_slice(key: bytes, plaintext: Buffer) -> bytes:
    """The ciphertext of a file in a pack."""
    return crypt_once(key, plaintext)


def decrypt_slice(key: bytes, ciphertext: Buffer, offset: int = 0) -> bytes:
    """Decrypt a part of a file that starts at `offset`."""
    return CtrCipher(key, offset).crypt(ciphertext)
