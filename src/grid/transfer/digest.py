"""The digest of a file's contents that a journal keeps, computed as they pass, and compared with what a later reading says.

It is a GMAC of each MiB under a key that only the journal has, so nobody else can make other contents with the same digest.
That takes a sixth of the time of SHA-256, even of two blocks at a time. [docs/decisions/0507-digests-under-the-journals-key.md]
"""

from __future__ import annotations

from hashlib import sha256

from cryptography.hazmat.primitives.ciphers import AEADEncryptionContext, Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import GCM

from grid.ports import Buffer

BLOCK = 2**20
"""Bytes hashed separately, so ranges may arrive in any order."""
DIGEST_SIZE = 16
KIND = "gmac "
"""What digests of whole contents begin with; those of earlier versions do not."""
_NONCE_SIZE = 12


class DigestKey:
    """The key of a journal's digests, ready for use: making it so would take most of the time that a small file takes."""

    def __init__(self, key: bytes) -> None:
        """key: 32 secret bytes."""
        self.cipher, self.mac = AES(key), AESGCM(key)


class ContentDigest:
    """A digest of contents that arrive in ranges, which begin at block boundaries."""

    def __init__(self, key: DigestKey) -> None:
        self._key = key
        self._begun: dict[int, AEADEncryptionContext] = {}
        self._known: dict[int, bytes] = {}

    def add(self, offset: int, data: Buffer) -> None:
        """Add bytes; those of one block arrive in order. If a block starts again, it is hashed again."""
        view = memoryview(data)
        while view:
            index, inside = divmod(offset, BLOCK)
            piece = view[: BLOCK - inside]
            if len(piece) == BLOCK:
                self._begun.pop(index, None)
                self._known[index] = self._key.mac.encrypt(index.to_bytes(_NONCE_SIZE), b"", piece)
            else:
                self._add_to_block(index, inside, piece)
            view, offset = view[len(piece) :], offset + len(piece)

    def take(self, offset: int, digests: bytes) -> None:
        """Add a range by the digests of its blocks."""
        for begin in range(0, len(digests), DIGEST_SIZE):
            index = offset // BLOCK + begin // DIGEST_SIZE
            self._known[index] = digests[begin : begin + DIGEST_SIZE]

    def of_range(self, offset: int, length: int) -> bytes:
        """The digests of a range's blocks, one after the other, once all of the range has arrived."""
        return b"".join(map(self._of_block, range(offset // BLOCK, -(-(offset + length) // BLOCK))))

    def text(self) -> str:
        """The digest of the whole contents, once everything has arrived."""
        whole = sha256()
        for index in sorted({*self._begun, *self._known}):
            whole.update(self._of_block(index))
        return KIND + whole.hexdigest()

    def _add_to_block(self, index: int, inside: int, piece: memoryview) -> None:
        if not inside:
            self._begun[index] = Cipher(self._key.cipher, GCM(index.to_bytes(_NONCE_SIZE))).encryptor()
            self._known.pop(index, None)
        if (begun := self._begun.get(index)) is not None:
            begun.authenticate_additional_data(piece)
            if inside + len(piece) == BLOCK:
                self._of_block(index)

    def _of_block(self, index: int) -> bytes:
        """The digest of a block, to which nothing can be added after that."""
        if (begun := self._begun.pop(index, None)) is not None:
            begun.finalize()
            self._known[index] = begun.tag
        return self._known[index]


def digest_of_bytes(key: DigestKey, data: Buffer) -> str:
    """The digest of contents that are there as a whole."""
    if len(data) > BLOCK:
        digest = ContentDigest(key)
        digest.add(0, data)
        return digest.text()
    tag = key.mac.encrypt(bytes(_NONCE_SIZE), b"", data) if data else b""
    return KIND + sha256(tag).hexdigest()
