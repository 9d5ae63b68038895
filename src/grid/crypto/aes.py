"""AES-128 in counter mode, from any byte on. [spec immutable 4; spec mutable 2]

Owns the counter: 16 bytes, big-endian, starting at zero, no nonce. A key must never encrypt two
different texts; that is the caller's affair.
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
    """Encrypts or decrypts (the same thing) consecutive bytes of one text from `offset` on.

    key: 16 bytes. offset: bytes of the text that are skipped, at no cost. ValueError for another key
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
        """Write the source's other form to the target, of the same length; it may be the source itself.

        Nothing else is copied. ValueError if the lengths differ.
        """
        if len(target) != len(source):
            raise ValueError(f"{len(source)} bytes do not go into {len(target)}")
        if source:
            self._stream.update_into(source, target)

    def crypt_each(self, sources: Iterable[Buffer], targets: Iterable[memoryview]) -> None:
        """What crypt_into does for one source after the other, each into its target; quicker where there are many.

        ValueError as there, or if they are not as many; what comes before is written then.
        """
        update = self._stream.update_into
        for source, target in zip(sources, targets, strict=True):
            if len(target) != len(source):
                raise ValueError(f"{len(source)} bytes do not go into {len(target)}")
            if source:
                update(source, target)

    def crypt(self, source: Buffer) -> bytes:
        """The source's other form."""
        return self._stream.update(source)


def crypt_once(key: bytes, text: Buffer) -> bytes:
    """A whole text's other form under a key of its own. [spec mutable 2]"""
    return CtrCipher(key).crypt(text)
