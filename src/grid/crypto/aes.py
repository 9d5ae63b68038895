"""AES-128 in counter mode, starting at any byte. [spec immutable 4; spec mutable 2]

Owns the counter: 16 bytes, big-endian, starting at zero, no nonce. Callers must never encrypt two
different texts with one key.
"""

from __future__ import annotations

from collections.abc import Iterable

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from grid.crypto.buffer import Buffer

KEY_SIZE = 16
_CELL = 16


class CtrCipher:
    """Encrypts or decrypts (the same operation) consecutive bytes of one text, starting at `offset`.

    key: 16 bytes. offset: bytes of the text to skip, at no cost. ValueError for a wrong key
    size or a negative offset.
    """

    __slots__ = ("_stream",)

    def __init__(self, key: bytes, offset: int = 0) -> None:
        if len(key) != KEY_SIZE:
            raise ValueError(f"a key has {KEY_SIZE} bytes, not {len(key)}")
        if offset < 0:
            raise ValueError("the text starts at offset 0")
        cell, skipped = divmod(offset, _CELL)
        counter = (cell % (1 << 128)).to_bytes(_CELL, "big")
        self._stream = Cipher(AES(key), CTR(counter)).encryptor()
        if skipped:
            self._stream.update(bytes(skipped))

    def crypt_into(self, source: Buffer, target: memoryview | bytearray) -> None:
        """Encrypt or decrypt the source into the target, which has the same length and may be the source itself.

        Nothing else is copied. ValueError if the lengths differ.
        """
        if len(target) != len(source):
            raise ValueError(f"{len(source)} bytes do not go into {len(target)}")
        if source:
            self._stream.update_into(source, target)

    def crypt_each(self, sources: Iterable[Buffer], targets: Iterable[memoryview]) -> None:
        """Call crypt_into for each pair of source and target; faster for many pairs.

        ValueError as in crypt_into, or if the numbers differ; earlier targets are then written already.
        """
        update = self._stream.update_into
        for source, target in zip(sources, targets, strict=True):
            if len(target) != len(source):
                raise ValueError(f"{len(source)} bytes do not go into {len(target)}")
            if source:
                update(source, target)

    def crypt(self, source: Buffer) -> bytes:
        """Encrypt or decrypt the source."""
        return self._stream.update(source)


def crypt_once(key: bytes, text: Buffer) -> bytes:
    """Encrypt or decrypt a whole text with a key that is used only for it. [spec mutable 2]"""
    return CtrCipher(key).crypt(text)
