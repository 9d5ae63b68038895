"""The text forms of Ed25519 keys and signatures. [spec wire 7]

A prefix and base32: `priv-v0-` (the seed) and `pub-v0-` in key files, `v0-` in announcements. Texts must have
no whitespace around them. No message contains text that could not be parsed.
"""

from __future__ import annotations

from grid.codec import base32
from grid.crypto.ed25519 import PUBLIC_KEY_SIZE, SEED_SIZE, SIGNATURE_SIZE, SigningKey, VerifyingKey
from grid.errors import FormatError

_SIGNING_PREFIX = "priv-v0-"
_VERIFYING_PREFIX = "pub-v0-"
_BARE_PREFIX = "v0-"


def pack_signing_key(key: SigningKey) -> str:
    """The `priv-v0-` text of a private key, which is a secret."""
    return _SIGNING_PREFIX + base32.encode(key.seed)


def parse_signing_key(text: str) -> SigningKey:
    """Parse a `priv-v0-` text; FormatError."""
    return SigningKey(_parse(text, _SIGNING_PREFIX, SEED_SIZE))


def pack_verifying_key(key: VerifyingKey) -> str:
    """The `pub-v0-` text of a public key, as in key files."""
    return _VERIFYING_PREFIX + base32.encode(key.data)


def parse_verifying_key(text: str) -> VerifyingKey:
    """Parse a `pub-v0-` text; FormatError."""
    return VerifyingKey(_parse(text, _VERIFYING_PREFIX, PUBLIC_KEY_SIZE))


def pack_bare_key(key: VerifyingKey) -> str:
    """The `v0-` text of a public key, as in announcements; this is the server id."""
    return _BARE_PREFIX + base32.encode(key.data)


def parse_bare_key(text: str) -> VerifyingKey:
    """Parse the `v0-` text of a public key; FormatError."""
    return VerifyingKey(_parse(text, _BARE_PREFIX, PUBLIC_KEY_SIZE))


def pack_signature(signature: bytes) -> str:
    """The `v0-` text of a signature."""
    return _BARE_PREFIX + base32.encode(signature)


def parse_signature(text: str) -> bytes:
    """Parse the `v0-` text of a signature into its 64 bytes; FormatError."""
    return _parse(text, _BARE_PREFIX, SIGNATURE_SIZE)


def _parse(text: str, prefix: str, size: int) -> bytes:
    if not text.startswith(prefix) or len(text) != len(prefix) + base32.encoded_size(size):
        raise FormatError(f"expected {prefix} followed by the base32 of {size} bytes")
    return base32.decode(text[len(prefix) :])
