"""The RSA keys of mutable files: their encodings, values derived from them, and signatures. [spec mutable 3]

Owns the DER forms. The bytes of a private key are kept unchanged, because the write key is their hash.
Keys have 2048 bits, because 1.20 refuses others. No repr and no message contains a private key.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    load_der_public_key,
    load_pem_private_key,
)

from grid.crypto.hashing import tagged_hash
from grid.errors import FormatError, IntegrityError
from grid.limits import MAX_RSA_KEY_SIZE
from grid.values import field, frozen

KEY_BITS = 2048
SIGNATURE_SIZE = 256
_SALT_SIZE = 32
_PADDING = PSS(mgf=MGF1(SHA256()), salt_length=_SALT_SIZE)


@frozen
class PublicKey:
    """Checks signatures. der: its SubjectPublicKeyInfo, unchanged."""

    der: bytes = field(repr=False)
    _key: RSAPublicKey = field(repr=False, eq=False)

    @property
    def fingerprint(self) -> bytes:
        """The 32-byte fingerprint in the file's caps."""
        return tagged_hash(b"allmydata_mutable_pubkey_to_fingerprint_v1", self.der)

    def verify(self, signature: bytes, message: bytes) -> None:
        """Check the key's signature of the message; IntegrityError if it is wrong."""
        try:
            self._key.verify(signature, message, _PADDING, SHA256())
        except InvalidSignature:
            raise IntegrityError("the signature is not that of the key over the message") from None


@frozen
class PrivateKey:
    """Signs. der: its PKCS#8 bytes, unchanged; a secret."""

    der: bytes = field(repr=False)
    _key: RSAPrivateKey = field(repr=False, eq=False)

    @property
    def write_key(self) -> bytes:
        """The 16-byte write key in the file's write cap."""
        return tagged_hash(b"allmydata_mutable_privkey_to_writekey_v1", self.der, 16)

    @property
    def public_key(self) -> PublicKey:
        """The public half."""
        public = self._key.public_key()
        return PublicKey(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo), public)

    def sign(self, message: bytes) -> bytes:
        """A 256-byte signature of the message, different each time."""
        return self._key.sign(message, _PADDING, SHA256())


def generate_key() -> PrivateKey:
    """Generate a key from OpenSSL's entropy; takes 0.1 s or several times that."""
    return _export(generate_private_key(65537, KEY_BITS))


def parse_private_key(der: bytes) -> PrivateKey:
    """Parse PKCS#8 bytes, and keep them; FormatError.

    It does not check that the numbers belong together: the holder of the write cap vouches for them.
    """
    return PrivateKey(der, _load_private(der, is_pem=False))


def import_private_key(data: bytes) -> PrivateKey:
    """Import a key as PEM or DER, PKCS#1 or PKCS#8. Its bytes become those that 1.20 would make.

    FormatError if it is not an unencrypted RSA key of 2048 bits.
    """
    return _export(_load_private(data, is_pem=data.lstrip().startswith(b"-----BEGIN")))


def parse_public_key(der: bytes) -> PublicKey:
    """Parse SubjectPublicKeyInfo bytes, and keep them; FormatError."""
    _check_size(der)
    try:
        key = load_der_public_key(der)
    except (ValueError, UnsupportedAlgorithm):
        raise FormatError("these bytes are not a public key") from None
    if not isinstance(key, RSAPublicKey) or key.key_size != KEY_BITS:
        raise FormatError(f"this is not a public RSA key of {KEY_BITS} bits")
    return PublicKey(der, key)


def _load_private(data: bytes, *, is_pem: bool) -> RSAPrivateKey:
    _check_size(data)
    load = load_pem_private_key if is_pem else load_der_private_key
    try:
        key = load(data, None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise FormatError("these bytes are not an unencrypted private key") from None
    if not isinstance(key, RSAPrivateKey) or key.key_size != KEY_BITS:
        raise FormatError(f"this is not a private RSA key of {KEY_BITS} bits")
    return key


def _export(key: RSAPrivateKey) -> PrivateKey:
    return PrivateKey(key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()), key)


def _check_size(data: bytes) -> None:
    if len(data) > MAX_RSA_KEY_SIZE:
        raise FormatError(f"no RSA key of {KEY_BITS} bits has {len(data)} bytes")
