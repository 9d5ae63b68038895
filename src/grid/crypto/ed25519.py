"""Ed25519 signatures. [spec wire 7]

Keys are bytes; codec.key_text has their text forms. No repr contains a seed.
"""

from __future__ import annotations

from attrs import field, validators
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from grid.crypto.buffer import Buffer
from grid.errors import IntegrityError
from grid.values import frozen

SEED_SIZE = 32
PUBLIC_KEY_SIZE = 32
SIGNATURE_SIZE = 64


@frozen
class VerifyingKey:
    """A public key of 32 bytes."""

    data: bytes = field(
        repr=bytes.hex, validator=[validators.min_len(PUBLIC_KEY_SIZE), validators.max_len(PUBLIC_KEY_SIZE)]
    )

    def verify(self, signature: bytes, message: Buffer) -> None:
        """Check the key's signature of the message; IntegrityError if it is wrong."""
        try:
            Ed25519PublicKey.from_public_bytes(self.data).verify(signature, message)
        except (InvalidSignature, ValueError):
            raise IntegrityError("the signature is not that of the key over the message") from None


@frozen
class SigningKey:
    """A private key. seed: 32 unpredictable bytes."""

    seed: bytes = field(repr=False, validator=[validators.min_len(SEED_SIZE), validators.max_len(SEED_SIZE)])

    @property
    def verifying_key(self) -> VerifyingKey:
        """The public half."""
        return VerifyingKey(self._key().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    def sign(self, message: Buffer) -> bytes:
        """The 64-byte signature of the message, which is deterministic."""
        return self._key().sign(message)

    def _key(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.seed)
